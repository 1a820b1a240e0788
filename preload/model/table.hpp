// SPDX-License-Identifier: Apache-2.0
// The table from descriptors to descriptions, read without a lock at each call of the program.
#pragma once

#include "system/critical.hpp"

#include <atomic>
#include <cstdint>

namespace sonde::buffer {

struct Description;

/// Descriptors at or above this are never buffered.
inline constexpr int max_descriptors = 1 << 16;
/// Slots are empty until a file is adopted. Read without a lock: an empty slot means "not registered".
extern std::atomic<Description*>* table;
extern std::atomic<std::uint32_t> files_known;

/// Returns whether any descriptor is registered; otherwise calls skip the table, and calls on paths are fast.
inline bool has_registered_descriptors() noexcept {
    return files_known.load(std::memory_order_relaxed) != 0;
}
inline bool is_registered_descriptor(int fd) noexcept {
    return has_registered_descriptors() && static_cast<unsigned>(fd) < max_descriptors &&
           table[fd].load(std::memory_order_acquire) != nullptr;
}
/// Returns whether the descriptor is registered and the call is one of the program, not one of the library or libc.
inline bool is_watched_descriptor(int fd) noexcept {
    return is_registered_descriptor(fd) && !system::Critical::is_in_library();
}
/// No descriptor above this was ever ours.
int get_highest_registered_descriptor() noexcept;

/// The library never opened a descriptor below this for itself.
extern std::atomic<int> lowest_own_descriptor;
/// Returns whether the library opened this descriptor for itself.
bool is_own_descriptor(int fd) noexcept;
/// Marks a descriptor as opened by the library for itself, until unmark_own_descriptor().
void mark_own_descriptor(int fd) noexcept;
void unmark_own_descriptor(int fd) noexcept;
extern std::atomic<int> highest;  ///< no descriptor above this was ever buffered

}  // namespace sonde::buffer
