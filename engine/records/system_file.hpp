// SPDX-License-Identifier: Apache-2.0
// Reads small files of /proc and /sys.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sonde::records {

/// The content; empty when the file cannot be read.
std::string read_system_file(const std::string& path);

/// The content without surrounding white space; nothing when the file is absent or empty.
std::optional<std::string> read_system_text(const std::string& path);

/// The content as a whole number; nothing for other content ("max").
std::optional<std::uint64_t> read_system_number(const std::string& path);

/// The value of `name:` in a file of such lines, e.g. "MemTotal" in /proc/meminfo; kB becomes bytes.
std::optional<std::uint64_t> find_bytes(std::string_view text, std::string_view name);

/// The choice in brackets of files such as "always [madvise] never"; the whole text without brackets.
std::string read_bracketed_choice(const std::string& word);

}  // namespace sonde::records
