// SPDX-License-Identifier: Apache-2.0
#include "layouts/text_fields.hpp"

#include <algorithm>
#include <charconv>
#include <stdexcept>

namespace sonde::layouts {

void throw_invalid_layout(const std::string& source, const std::string& reason) {
    throw std::invalid_argument("what " + source + " says of the file's layout " + reason);
}

void throw_invalid_attribute(const std::string& reason) {
    throw std::invalid_argument("the layout attribute of the file " + reason);
}

std::optional<std::uint64_t> parse_number(std::string_view text, std::string_view* remainder) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const std::string_view suffix = text.substr(static_cast<std::size_t>(end - text.data()));
    if (error != std::errc() || (remainder == nullptr && !suffix.empty())) {
        return std::nullopt;
    }
    if (remainder != nullptr) {
        *remainder = suffix;
    }
    return value;
}

std::optional<std::uint64_t> parse_size(std::string_view text) {
    constexpr std::uint64_t max_bytes = 1ULL << 40U;
    std::string_view unit;
    const auto count = parse_number(text, &unit);
    constexpr std::string_view units = "KMGT";
    if (!count || unit.size() > 1 || (unit.size() == 1 && units.find(unit[0]) == std::string_view::npos)) {
        return std::nullopt;
    }
    const std::size_t shift = unit.empty() ? 0 : 10 * (units.find(unit[0]) + 1);
    return *count <= max_bytes >> shift ? std::optional(*count << shift) : std::nullopt;
}

std::string_view trim(std::string_view text) {
    const std::size_t first = text.find_first_not_of(" \t\r");
    return first == std::string_view::npos ? std::string_view()
                                           : text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

std::optional<std::string_view> find_field(std::string_view text, std::string_view name) {
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        const std::string_view line = trim(text.substr(begin, end - begin));
        if (line.starts_with(name)) {
            return trim(line.substr(name.size()));
        }
        begin = end + 1;
    }
    return std::nullopt;
}

}  // namespace sonde::layouts
