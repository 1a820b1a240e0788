// SPDX-License-Identifier: Apache-2.0
// Detects a child of vfork(), which runs in the memory of its parent.
#pragma once

#include <atomic>

namespace sonde::intercept {

extern std::atomic<bool> vforked;
bool is_other_process() noexcept;
/// True in the child of vfork, which works in the memory of its parent: what it does to descriptors is not the
/// parent's.
inline bool is_in_vfork_child() noexcept {
    return vforked.load(std::memory_order_relaxed) && is_other_process();
}
/// Records that the calling process owns this memory: at the start, and in a child of fork().
void record_memory_owner() noexcept;

}  // namespace sonde::intercept
