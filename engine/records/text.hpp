// SPDX-License-Identifier: Apache-2.0
// Bytes from the outside world (paths, mount options, host names) as JSON text, whatever they hold.
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
std::string json_text(std::string_view bytes);

/// The bytes that json_text() was given.
std::string bytes_of(std::string_view text);

/// Text in which names of files or words of the user are quoted, on one line: control characters, which could begin a
/// second one or drive the terminal, become '?'.
std::string one_line(std::string text);

/// The program in whose name complain() speaks, from now on; before that it is the engine. `name` outlives all calls.
void speak_as(const char* name);

/// Says one sentence to the user: one line on standard error, in one system call, so that those of several processes
/// do not mix.
void complain(const std::string& sentence);

}  // namespace sonde::records
