// SPDX-License-Identifier: Apache-2.0
// Between buffered, asleep and let go. Unless said otherwise the lock of the file is held.
#pragma once

#include "buffer/file.hpp"

namespace sonde::buffer {

/// No new operation gets in, none is under way, no worker is at it. Check the mode afterwards.
void close_gate(File& file) noexcept;
void open_gate(File& file) noexcept;
/// Active to Asleep: everything to the kernel. `calls`: 0 = until wake_up(), else that many calls later.
void fall_asleep(File& file) noexcept;
void sleep_for(File& file, std::int32_t calls) noexcept;
void wake_up(File& file) noexcept;
void through_for_good(File& file, const char* reason) noexcept;
/// When somebody else has appended to a file that was said to be ours: lets go of it. What both wrote is in the file.
void heed_growth(File& file) noexcept;
inline constexpr const char* why_grown = "somebody else wrote to it although append=own says that nobody does";
/// With `appends`, after `bytes` were written, whereupon the kernel's file had `size`: that is ours alone, or it grew.
void note_landed(File& file, std::uint64_t bytes, std::int64_t size) noexcept;

}  // namespace sonde::buffer
