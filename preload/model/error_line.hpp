// SPDX-License-Identifier: Apache-2.0
// Errors that no call of the program can report: a line on standard error and in the system log.
#pragma once

#include "system/text.hpp"

namespace sonde::buffer {

/// Begins a line with its priority in the system log and the name of the library.
void begin_error_line(system::Text& line) noexcept;
/// Prints a line that `begin_error_line` began and that ends with a newline.
void log_error_line(const system::Text& line) noexcept;
/// `variable`: of the environment, which names the file or its folder.
void log_unwritable_file(const char* variable, const char* path) noexcept;

}  // namespace sonde::buffer
