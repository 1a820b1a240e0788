// SPDX-License-Identifier: Apache-2.0
// Matches names with shell patterns, as in job scripts.
#pragma once

namespace sonde::settings {

/// `*` and `?` match any sign, "/" too; `[a-z]`, `[!x]` sets; `\` takes the next sign as it is.
bool glob_matches(const char* pattern, const char* name) noexcept;

/// The pattern against the name as the program gave it, the absolute path, and, for a pattern without "/", the last
/// part of the path. `absolute` may be null.
bool pattern_covers(const char* pattern, const char* name, const char* absolute) noexcept;

/// Returns whether a path belongs to the system, not to a user's data: /etc, /usr, /proc, ...
bool is_system_path(const char* absolute) noexcept;

}  // namespace sonde::settings
