// SPDX-License-Identifier: Apache-2.0
#include "dialects/number.hpp"

#include "plan/plan_error.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <string_view>

namespace sonde::dialects {
namespace {

using plan::PlanError;

/// Bits by which a unit shifts; nothing when there is no such unit.
std::optional<unsigned> get_unit_shift(std::string unit) {
    unit.erase(std::remove(unit.begin(), unit.end(), ' '), unit.end());
    std::transform(unit.begin(), unit.end(), unit.begin(), [](unsigned char c) { return std::tolower(c); });
    constexpr std::string_view letters = "kmgtp";
    if (unit.empty() || unit == "b") {
        return 0;
    }
    const std::size_t power = letters.find(unit[0]);
    const std::string_view suffix = std::string_view(unit).substr(1);
    if (power == std::string_view::npos || (!suffix.empty() && suffix != "b" && suffix != "ib")) {
        return std::nullopt;
    }
    return 10 * (static_cast<unsigned>(power) + 1);
}

}  // namespace

std::int64_t read_scaled_number(const std::string& text, const std::string& name) {
    const std::string subject = name.empty() ? "is" : name + " is";
    const std::size_t first = std::min(text.find_first_not_of(' '), text.size());
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data() + first, text.data() + text.size(), number);
    std::string unit(end, text.data() + text.size());
    const bool decimals = unit.starts_with('.');
    if (decimals) {
        unit.erase(0, std::min(unit.find_first_not_of("0123456789", 1), unit.size()));
    }
    const std::optional<unsigned> shift = get_unit_shift(unit);
    if (error == std::errc::result_out_of_range) {
        throw PlanError(subject + " " + text + ", which is more than 8 EiB");
    }
    if (error != std::errc() || !shift || (decimals && *shift > 0)) {
        throw PlanError(subject + " \"" + text +
                        "\", but must be a whole number, with k, m, g, t or p for powers of 1024");
    }
    const std::int64_t factor = std::int64_t{1} << *shift;
    if (number > INT64_MAX / factor || number < INT64_MIN / factor) {
        throw PlanError(subject + " " + text + ", which is more than 8 EiB");
    }
    return number * factor;
}

std::int64_t read_scaled_number(const std::string& text, const std::string& name, std::int64_t least,
                                std::int64_t most) {
    const std::int64_t number = read_scaled_number(text, name);
    if (number < least || number > most) {
        throw PlanError((name.empty() ? "is " : name + " is ") + text + ", but must be from " + std::to_string(least) +
                        " to " + std::to_string(most));
    }
    return number;
}

}  // namespace sonde::dialects
