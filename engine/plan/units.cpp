// SPDX-License-Identifier: Apache-2.0
#include "plan/units.hpp"

#include "plan/uint128.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <stdexcept>

namespace sonde::plan {
namespace {

struct UnitFactor {
    std::string_view name;
    double factor;
};

constexpr std::array<UnitFactor, 11> byte_units{{{"B", 1.0},
                                                 {"kB", 1e3},
                                                 {"MB", 1e6},
                                                 {"GB", 1e9},
                                                 {"TB", 1e12},
                                                 {"PB", 1e15},
                                                 {"KiB", 0x1p10},
                                                 {"MiB", 0x1p20},
                                                 {"GiB", 0x1p30},
                                                 {"TiB", 0x1p40},
                                                 {"PiB", 0x1p50}}};
constexpr std::array<UnitFactor, 6> time_units{
    {{"ns", 1.0}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"min", 60e9}, {"h", 3600e9}}};

struct NumberParts {
    double number = 0;
    std::string_view digits;  ///< the number as written
    std::string_view unit;
};

NumberParts split_number(std::string_view text, const char* subject) {
    NumberParts parts;
    std::size_t end = 0;
    while (end < text.size() && (std::isdigit(static_cast<unsigned char>(text[end])) != 0 || text[end] == '.')) {
        ++end;
    }
    parts.digits = text.substr(0, end);
    const char* const first = text.data();
    const char* const last = first + end;
    const auto parsed = std::from_chars(first, last, parts.number);
    if (parts.digits.empty() || parsed.ec != std::errc{} || parsed.ptr != last) {
        throw std::invalid_argument("'" + std::string(text) + "' is not " + subject);
    }
    while (end < text.size() && text[end] == ' ') {
        ++end;
    }
    parts.unit = text.substr(end);
    return parts;
}

constexpr uint128 largest = std::numeric_limits<std::int64_t>::max();  // bytes in a file

/// `digits` times `factor` in decimal arithmetic: 1.001 kB is exactly 1001 B.
std::uint64_t to_exact_bytes(std::string_view text, std::string_view digits, std::uint64_t factor) {
    const std::size_t point = std::min(digits.find('.'), digits.size());
    uint128 bytes = 0;
    for (const char digit : digits.substr(0, point)) {
        bytes = bytes * 10 + static_cast<unsigned>(digit - '0') * static_cast<uint128>(factor);
        if (bytes > largest) {
            throw std::invalid_argument("'" + std::string(text) + "' is more than a file can hold");
        }
    }
    uint128 fraction = 0;  // bytes of the fraction, times scale
    uint128 scale = 1;     // ten to the power of the number of decimals
    for (std::size_t i = point + 1; i < digits.size(); ++i) {
        if (scale > largest) {
            fraction += digits[i] != '0' ? 1U : 0U;
            continue;
        }
        scale *= 10;
        fraction = fraction * 10 + static_cast<unsigned>(digits[i] - '0') * static_cast<uint128>(factor);
    }
    if (fraction % scale != 0 || bytes + fraction / scale > largest) {
        throw std::invalid_argument(
            "'" + std::string(text) + "' is " +
            (fraction % scale != 0 ? "not a whole number of bytes" : "more than a file can hold"));
    }
    return static_cast<std::uint64_t>(bytes + fraction / scale);
}

}  // namespace

std::uint64_t parse_bytes(std::string_view text) {
    const NumberParts parts = split_number(text, "a number of bytes such as 4KiB or 10kB");
    if (parts.unit.empty()) {
        return to_exact_bytes(text, parts.digits, 1);
    }
    for (const UnitFactor& unit : byte_units) {
        if (unit.name == parts.unit) {
            return to_exact_bytes(text, parts.digits, static_cast<std::uint64_t>(unit.factor));
        }
    }
    if (parts.unit.size() == 1 && std::string_view("kKmMgGtTpP").find(parts.unit[0]) != std::string_view::npos) {
        const auto letter = static_cast<char>(std::toupper(static_cast<unsigned char>(parts.unit[0])));
        const std::string number(text.substr(0, text.size() - parts.unit.size()));
        throw std::invalid_argument("'" + std::string(text) + "' is ambiguous: write " + number + letter +
                                    "iB (powers of 1024) or " + number + (letter == 'K' ? 'k' : letter) +
                                    "B (powers of 1000)");
    }
    throw std::invalid_argument("'" + std::string(text) +
                                "' has an unknown unit: use B, kB, MB, GB, TB, PB (powers of "
                                "1000) or KiB, MiB, GiB, TiB, PiB (powers of 1024)");
}

std::int64_t parse_duration(std::string_view text) {
    const NumberParts parts = split_number(text, "a duration such as 10s or 500ms");
    const std::string_view name = parts.unit.empty() ? std::string_view("s") : parts.unit;
    for (const UnitFactor& unit : time_units) {
        if (unit.name == name) {
            const double value = parts.number * unit.factor;
            if (value > 3.2e18) {
                throw std::invalid_argument("'" + std::string(text) + "' is longer than a hundred years");
            }
            return std::llround(value);
        }
    }
    throw std::invalid_argument("'" + std::string(text) + "' has an unknown unit: use ns, us, ms, s, min or h");
}

double parse_rate(std::string_view text) {
    if (text.size() < 3 || text.substr(text.size() - 2) != "/s") {
        throw std::invalid_argument("'" + std::string(text) + "' is not a rate such as 100MB/s");
    }
    const NumberParts parts = split_number(text.substr(0, text.size() - 2), "a rate such as 100MB/s");
    for (const UnitFactor& unit : byte_units) {
        if (unit.name == parts.unit) {
            if (parts.number <= 0) {
                throw std::invalid_argument("'" + std::string(text) + "' must be more than zero");
            }
            return parts.number * unit.factor;
        }
    }
    throw std::invalid_argument("'" + std::string(text) + "' has an unknown unit: use for instance MB/s or MiB/s");
}

std::string format_bytes(std::uint64_t bytes) {
    constexpr std::array<const char*, 6> binary{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    std::size_t power = 0;
    auto value = static_cast<double>(bytes);
    while (value >= 1024.0 && power + 1 < binary.size()) {
        value /= 1024.0;
        ++power;
    }
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), value == std::floor(value) ? "%.0f %s" : "%.1f %s", value, binary[power]);
    return text.data();
}

}  // namespace sonde::plan
