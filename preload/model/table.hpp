// SPDX-License-Identifier: Apache-2.0
// From descriptors to what is known of them: read at each call of the program, without a lock.
#pragma once

#include "system/critical.hpp"

#include <atomic>
#include <cstdint>

namespace sonde::buffer {

struct Description;

/// Descriptors at or above this are never buffered.
inline constexpr int most_descriptors = 1 << 16;
/// All slots empty until a file is adopted. Read without a lock: an empty slot means "not ours".
extern std::atomic<Description*>* table;
extern std::atomic<std::uint32_t> files_known;

/// True while the table has a file; otherwise calls skip the slots, and calls on paths are fast.
inline bool has_registered_descriptors() noexcept {
    return files_known.load(std::memory_order_relaxed) != 0;
}
inline bool is_registered_descriptor(int fd) noexcept {
    return has_registered_descriptors() && static_cast<unsigned>(fd) < most_descriptors &&
           table[fd].load(std::memory_order_acquire) != nullptr;
}
/// The same for calls of the program, not of somebody below us.
inline bool is_watched_descriptor(int fd) noexcept {
    return is_registered_descriptor(fd) && !system::Critical::inside();
}
/// No descriptor above this was ever ours.
int highest_descriptor() noexcept;

/// No descriptor below this was ever opened by us for ourselves.
extern std::atomic<int> lowest_private;
/// A descriptor that we opened for ourselves.
bool is_private(int fd) noexcept;
/// The descriptor was opened by the library for itself; ends with unmark_own_descriptor().
void mark_own_descriptor(int fd) noexcept;
void unmark_own_descriptor(int fd) noexcept;
extern std::atomic<int> highest;  ///< no descriptor above this was ever buffered

}  // namespace sonde::buffer
