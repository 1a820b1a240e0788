// SPDX-License-Identifier: Apache-2.0
// Converts arbitrary bytes (paths, mount options, host names) to JSON text; messages to the user.
#pragma once

#include <string>
#include <string_view>

namespace sonde::records {

/// Text for a JSON string. Paths are bytes, JSON is Unicode, so one rule makes every path printable and reversible:
/// valid UTF-8 stays as it is; each byte that is not part of valid UTF-8 becomes `\xHH` (four characters: backslash, x,
/// two lower-case hex digits); so that this cannot be confused with a path that holds those characters, a backslash
/// that is followed by `x` becomes `\x5c`. Names without backslash or broken UTF-8 are unchanged.
/// Surrogates, overlong forms and code points above U+10FFFF count as invalid. NUL and other control characters are
/// left alone: the JSON serializer escapes them.
std::string to_json_text(std::string_view bytes);

/// The bytes that to_json_text() was given.
std::string from_json_text(std::string_view text);

/// Replaces control characters, which could start a line or control the terminal, by '?'.
std::string to_single_line(std::string text);

/// Sets the program name that print_error() prints; the default is that of the engine. `name` must outlive all calls.
void set_program_name(const char* name);

/// Prints one sentence as one line on standard error, in one system call, so that lines of several processes do not
/// mix.
void print_error(const std::string& sentence);

}  // namespace sonde::records
