// SPDX-License-Identifier: Apache-2.0
// Whether gathering pays for a stream: how many calls in a row it takes before it is tried, how dear calls are here,
// and what a stretch that is over has gained.
#pragma once

#include "stretch/stream.hpp"

#include <cstddef>
#include <cstdint>

namespace sonde::stretch {

/// Stretches are tried whether they pay or not (gather=always).
void gather_always(bool yes) noexcept;
/// Counts the call; true when it follows the one before, is small, and enough did so far.
bool long_enough(Stream& stream, std::size_t bytes, std::int64_t at) noexcept;
/// The next try comes later.
void wait_longer(Stream& stream) noexcept;
/// A stretch is over in which so many calls were gathered, and `traps` calls of the program were stopped. `took_long`:
/// it ended by its clock.
void judge(Stream& stream, std::uint32_t gathered, std::uint32_t traps, bool took_long) noexcept;
/// The call itself takes long here, whatever it moves.
bool calls_are_dear(const Stream& stream) noexcept;

}  // namespace sonde::stretch
