// SPDX-License-Identifier: Apache-2.0
// Small files of /proc and /sys: read whole, trimmed, absent when they cannot be had.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sonde::records {

/// The whole content; empty when the file cannot be read.
std::string read_system_file(const std::string& path);

/// The content without white space at its ends; nothing when the file is absent or empty.
std::optional<std::string> system_word(const std::string& path);

/// The content as a whole number; nothing when it is something else ("max").
std::optional<std::uint64_t> system_number(const std::string& path);

/// The value of `name:` in a file of such lines, e.g. "MemTotal" in /proc/meminfo; kB becomes bytes.
std::optional<std::uint64_t> bytes_in(std::string_view text, std::string_view name);

/// The choice in brackets of files such as "always [madvise] never"; the whole word when there are none.
std::string chosen(const std::string& word);

}  // namespace sonde::records
