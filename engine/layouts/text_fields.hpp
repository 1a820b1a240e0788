// SPDX-License-Identifier: Apache-2.0
// Numbers, sizes and lines in the text that programs and attributes of file systems print.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sonde::layouts {

/// Throws std::invalid_argument: "what SOURCE says of the file's layout REASON".
[[noreturn]] void throw_invalid_layout(const std::string& source, const std::string& reason);
/// Throws std::invalid_argument: "the layout attribute of the file REASON".
[[noreturn]] void throw_invalid_attribute(const std::string& reason);
/// The decimal number at the beginning of the text; absent when there is none, or when text follows it and `remainder`,
/// which receives that text, is nullptr.
std::optional<std::uint64_t> parse_number(std::string_view text, std::string_view* remainder = nullptr);
/// Bytes of "512K", "1M", "65536" (powers of 1024). Absent above 1 TiB: no chunk is so large, and a stripe over all
/// targets must fit in 64 bits.
std::optional<std::uint64_t> parse_size(std::string_view text);
/// The text without blanks, tabs and carriage returns at both ends.
std::string_view trim(std::string_view text);
/// The text after `name` on the line that begins with `name`; absent without such a line.
std::optional<std::string_view> find_field(std::string_view text, std::string_view name);

}  // namespace sonde::layouts
