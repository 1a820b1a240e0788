// SPDX-License-Identifier: Apache-2.0
// Detects a child of vfork(), which runs in the memory of its parent.
#pragma once

#include <atomic>

namespace sonde::intercept {

extern std::atomic<bool> vforked;
bool in_borrowed_memory_slow() noexcept;
/// True in the child of vfork, which works in the memory of its parent: what it does to descriptors is not the
/// parent's.
inline bool in_borrowed_memory() noexcept {
    return vforked.load(std::memory_order_relaxed) && in_borrowed_memory_slow();
}
/// Records that the calling process owns this memory: at the start, and in a child of fork().
void own_memory() noexcept;

}  // namespace sonde::intercept
