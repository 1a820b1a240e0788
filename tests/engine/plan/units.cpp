// SPDX-License-Identifier: Apache-2.0
// Quantities: every unit, exact results, and refusals that say what to write instead.
#include "plan/units.hpp"

#include <doctest/doctest.h>
#include <stdexcept>
#include <string>
#include <utility>

using sonde::plan::format_bytes;
using sonde::plan::parse_bytes;
using sonde::plan::parse_duration;
using sonde::plan::parse_rate;

namespace {

template <class Parse>
std::string error_of(Parse parse, const std::string& text) {
    try {
        parse(text);
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
    return "";
}

std::string error_of_bytes(const std::string& text) {
    return error_of([](const std::string& t) { return parse_bytes(t); }, text);
}

}  // namespace

TEST_CASE("bytes_are_exact_in_every_unit") {
    const std::pair<const char*, std::uint64_t> table[] = {
        {"0", 0},
        {"4096", 4096},
        {"17B", 17},
        {"10kB", 10'000},
        {"4KiB", 4096},
        {"3MB", 3'000'000},
        {"3MiB", 3U << 20U},
        {"2GB", 2'000'000'000},
        {"2GiB", 2ULL << 30U},
        {"5TB", 5'000'000'000'000},
        {"5TiB", 5ULL << 40U},
        {"7PB", 7'000'000'000'000'000},
        {"7PiB", 7ULL << 50U},
        {"1.5KiB", 1536},
        {".5KiB", 512},
        {"0.1kB", 100},
        {"4 KiB", 4096},
        {"1.25GiB", 1'342'177'280},
        {"9007199254740993B", 9'007'199'254'740'993},  // 2^53 + 1: no double holds it
        {"9007199254740993", 9'007'199'254'740'993},
        {"8191PiB", 8191ULL << 50U},
    };
    for (const auto& [text, bytes] : table) {
        CAPTURE(text);
        CHECK(parse_bytes(text) == bytes);
    }
}

TEST_CASE("decimal_fractions_of_units_are_exact_bytes") {
    // 1.001 * 1000 is 1000.9999999999999 in binary: the sum must be done in decimals.
    for (int thousandths = 1; thousandths < 10'000; ++thousandths) {
        std::string digits = std::to_string(thousandths % 1000);
        digits.insert(0, 3 - digits.size(), '0');
        const std::string text = std::to_string(thousandths / 1000) + "." + digits + "kB";
        CAPTURE(text);
        REQUIRE(parse_bytes(text) == static_cast<std::uint64_t>(thousandths));
    }
    CHECK(error_of_bytes("1.0005kB") == "'1.0005kB' is not a whole number of bytes");
    CHECK(error_of_bytes("0.3KiB") == "'0.3KiB' is not a whole number of bytes");
    CHECK(error_of_bytes("1.5") == "'1.5' is not a whole number of bytes");
    CHECK(error_of_bytes("1.0000000000001TB") == "'1.0000000000001TB' is not a whole number of bytes");
}

TEST_CASE("ambiguous_unit_is_rejected_with_both_readings") {
    CHECK(error_of_bytes("4k") == "'4k' is ambiguous: write 4KiB (powers of 1024) or 4kB (powers of 1000)");
    CHECK(error_of_bytes("1.5M") == "'1.5M' is ambiguous: write 1.5MiB (powers of 1024) or 1.5MB (powers of 1000)");
    for (const char* text : {"1K", "1m", "1g", "1G", "1t", "1T", "1p", "1P"}) {
        CAPTURE(text);
        CHECK(error_of_bytes(text).find("is ambiguous") != std::string::npos);
    }
}

TEST_CASE("invalid_byte_number_is_rejected") {
    for (const char* text : {"", " ", "-1", "+1", "KiB", "1..5KiB", ".", "1,5KiB", "0x10", "1e3", "1KB", "1kib",
                             "1 KiB ", "1KiB/s", "nan", "inf", "\xff"}) {
        CAPTURE(text);
        CHECK(error_of_bytes(text) != "");
    }
}

TEST_CASE("bytes_beyond_largest_file_are_rejected") {
    for (const char* text : {"9223372036854775808", "18446744073709551615", "18446744073709551616", "8192PiB", "9224PB",
                             "99999999999999999999999999PiB"}) {
        CAPTURE(text);
        CHECK(error_of_bytes(text) != "");
    }
    CHECK(parse_bytes("9223372036854775807") == 9'223'372'036'854'775'807ULL);
}

TEST_CASE("durations_are_ns_and_bare_numbers_seconds") {
    CHECK(parse_duration("1ns") == 1);
    CHECK(parse_duration("1.5us") == 1500);
    CHECK(parse_duration("500ms") == 500'000'000);
    CHECK(parse_duration("10s") == 10'000'000'000);
    CHECK(parse_duration("10") == 10'000'000'000);
    CHECK(parse_duration("0.1") == 100'000'000);
    CHECK(parse_duration("2min") == 120'000'000'000);
    CHECK(parse_duration("1h") == 3'600'000'000'000);
    for (const char* text : {"", "s", "-1s", "1m", "1sec", "1d", "1 s s", "9999999999h"}) {
        CAPTURE(text);
        CHECK(error_of([](const std::string& t) { return parse_duration(t); }, text) != "");
    }
}

TEST_CASE("rates_are_bytes_per_second_and_not_zero") {
    CHECK(parse_rate("100MB/s") == 100e6);
    CHECK(parse_rate("1.5GiB/s") == 1.5 * 0x1p30);
    CHECK(parse_rate("1B/s") == 1.0);
    for (const char* text : {"100MB", "100", "100/s", "/s", "0MB/s", "-1MB/s", "1M/s", "1MB/min"}) {
        CAPTURE(text);
        CHECK(error_of([](const std::string& t) { return parse_rate(t); }, text) != "");
    }
}

TEST_CASE("bytes_are_formatted_in_exact_binary_units") {
    CHECK(format_bytes(0) == "0 B");
    CHECK(format_bytes(17) == "17 B");
    CHECK(format_bytes(1023) == "1023 B");
    CHECK(format_bytes(1024) == "1 KiB");
    CHECK(format_bytes(1536) == "1.5 KiB");
    CHECK(format_bytes(10'000) == "9.8 KiB");
    CHECK(format_bytes(1ULL << 30U) == "1 GiB");
    CHECK(format_bytes(3ULL << 50U) == "3 PiB");
    CHECK(format_bytes(1ULL << 62U) == "4096 PiB");
}
