// SPDX-License-Identifier: Apache-2.0
// The child of vfork works in the memory of its parent.
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
/// The calling process owns this memory: at the start, and in the child of fork.
void own_memory() noexcept;

}  // namespace sonde::intercept
