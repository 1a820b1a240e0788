// SPDX-License-Identifier: Apache-2.0
// Starts threads with all signals blocked, so that the program's handlers run in its own threads.
#pragma once

#include <cstdint>

namespace sonde::buffer {

/// Starts `count` detached threads with small stacks. Returns how many were started.
std::uint32_t start_threads(void* (*run)(void*) noexcept, std::uint32_t count) noexcept;
inline std::uint32_t start_thread(void* (*run)(void*) noexcept) noexcept {
    return start_threads(run, 1);
}
/// A thread that announced its end still exists for a moment. Waits until it has ended, 0.2 s at
/// most.
void wait_for_thread_end(long thread) noexcept;

}  // namespace sonde::buffer
