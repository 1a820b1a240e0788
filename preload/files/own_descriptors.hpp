// SPDX-License-Identifier: Apache-2.0
// The program's right to all of its descriptor numbers: ours give way.
#pragma once

namespace sonde::buffer {

/// The program has no number left. True when we had one, which it may have now: those with O_DIRECT first; then all
/// buffering ends, and with it the need for any.
bool give_up_own_descriptor() noexcept;
/// The program needs the number of one of our descriptors: moves that descriptor to another number.
void move_own_descriptor(int fd) noexcept;

}  // namespace sonde::buffer
