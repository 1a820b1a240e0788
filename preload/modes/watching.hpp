// SPDX-License-Identifier: Apache-2.0
// The first calls on a file with option auto pass through and are counted: no page, lease or thread exists yet. Then
// the file becomes active, or passes through until another look. Functions require the lock of the file unless stated
// otherwise.
#pragma once

#include "model/file.hpp"

namespace sonde::buffer {

/// Watches a new file for calls_of_a_watch calls, or applies the settings that were chosen for it before.
void begin_watch(File& file) noexcept;
/// Chooses the settings; then resumes buffering, or suspends it until the file is watched again.
void end_watch(File& file) noexcept;
void reset_watching_after_fork() noexcept;

}  // namespace sonde::buffer
