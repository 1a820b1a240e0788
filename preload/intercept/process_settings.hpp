// SPDX-License-Identifier: Apache-2.0
// Reads the settings of this process from the environment, settings files and the file of the site.
#pragma once

#include "settings/params.hpp"

namespace sonde::intercept {

/// The environment as it was given: a program may have replaced getenv, or not have started yet. Null when it is not
/// set or empty.
const char* get_initial_variable(const char* name) noexcept;
/// A copy of the variable, because some programs write their title over the environment. Null when it is not set, or
/// without memory.
const char* copy_initial_variable(const char* name) noexcept;

/// Returns the settings; null if this process buffers and counts nothing. Reports wrong settings on standard error.
settings::Settings* read_settings() noexcept;

}  // namespace sonde::intercept
