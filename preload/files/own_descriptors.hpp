// SPDX-License-Identifier: Apache-2.0
// Moves or closes descriptors of the library whose numbers the program needs.
#pragma once

namespace sonde::buffer {

/// The program has no number left. True when we had one, which it may have now: those with O_DIRECT first; then all
/// buffering ends, and with it the need for any.
bool release_own_descriptor() noexcept;
/// Moves a descriptor of the library to another number, because the program needs this one.
void move_own_descriptor(int fd) noexcept;

}  // namespace sonde::buffer
