// SPDX-License-Identifier: Apache-2.0
#include "workloads/walk_board.hpp"

#include <sched.h>
#include <cstring>
#include <new>

namespace sonde::workloads {

bool WalkStack::lock() noexcept {
    // A few tries at once, then others may run: with more streams than cores the holder may be waiting for this core.
    constexpr int most = 1'000'000;
    for (int i = 0; i < most; ++i) {
        std::uint32_t free = 0;
        if (locked_.compare_exchange_weak(free, 1, std::memory_order_acquire)) {
            return true;
        }
        if (i > 16) {
            sched_yield();
        }
    }
    return false;
}

bool WalkStack::push(std::string_view path) noexcept {
    if (path.size() > max_path_bytes || count_.load(std::memory_order_relaxed) >= slot_count || !lock()) {
        return false;
    }
    const std::uint32_t count = count_.load(std::memory_order_relaxed);
    const bool room = count < slot_count;
    if (room) {
        PathSlot& slot = slots_[(oldest_ + count) % slot_count];
        slot.length = static_cast<std::uint16_t>(path.size());
        std::memcpy(slot.text, path.data(), path.size());
        count_.store(count + 1, std::memory_order_relaxed);
    }
    unlock();
    return room;
}

bool WalkStack::pop_newest(std::string& path) noexcept {
    if (count_.load(std::memory_order_relaxed) == 0 || !lock()) {
        return false;
    }
    const std::uint32_t count = count_.load(std::memory_order_relaxed);
    if (count > 0) {
        const PathSlot& slot = slots_[(oldest_ + count - 1) % slot_count];
        path.assign(slot.text, slot.length);
        count_.store(count - 1, std::memory_order_relaxed);
    }
    unlock();
    return count > 0;
}

bool WalkStack::steal_oldest(std::string& path) noexcept {
    if (count_.load(std::memory_order_relaxed) == 0 || !lock()) {
        return false;
    }
    const std::uint32_t count = count_.load(std::memory_order_relaxed);
    if (count > 0) {
        const PathSlot& slot = slots_[oldest_];
        path.assign(slot.text, slot.length);
        oldest_ = (oldest_ + 1) % slot_count;
        count_.store(count - 1, std::memory_order_relaxed);
    }
    unlock();
    return count > 0;
}

void WalkStack::clear() noexcept {
    locked_.store(0);
    count_.store(0);
    oldest_ = 0;
}

void WalkBoard::reset(int count) {
    stream_count = count;
    unfinished_directories.store(1);
    idle_streams.store(0);
    for (int i = 0; i < count; ++i) {
        stack(i).clear();
    }
}

}  // namespace sonde::workloads
