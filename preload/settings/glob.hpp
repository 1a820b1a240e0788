// SPDX-License-Identifier: Apache-2.0
// Shell patterns on names, as job scripts write them.
#pragma once

namespace sonde::settings {

/// `*` and `?` match any sign, "/" too; `[a-z]`, `[!x]` sets; `\` takes the next sign as it is.
bool glob_matches(const char* pattern, const char* name) noexcept;

/// The pattern against the name as the program gave it, the absolute path, and, for a pattern without "/", the last
/// part of the path. `absolute` may be null.
bool pattern_covers(const char* pattern, const char* name, const char* absolute) noexcept;

/// Files that belong to the system and not to the work of a user: /etc, /usr, /proc, ...
bool is_system_path(const char* absolute) noexcept;

}  // namespace sonde::settings
