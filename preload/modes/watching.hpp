// SPDX-License-Identifier: Apache-2.0
// The first calls on a file with option auto pass through and are counted: no page, lease or thread exists yet. Then
// the file becomes active, or passes through until another look. Functions require the lock of the file unless stated
// otherwise.
#pragma once

#include "model/file.hpp"

namespace sonde::buffer {

/// For a file that has just become known: looked at for calls_of_a_watch calls, or what was chosen for it before.
void begin_watch(File& file) noexcept;
/// Chooses, and resumes the file or suspends it until another look.
void end_watch(File& file) noexcept;
void reset_watching_after_fork() noexcept;

}  // namespace sonde::buffer
