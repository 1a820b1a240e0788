// SPDX-License-Identifier: Apache-2.0
// Calls that go to the kernel directly while buffering of their file is suspended. A thread that resumes buffering must
// wait for them, since the buffer does not see their effect. Such calls gain nothing from buffering, so they must cost
// nothing: a thread stores the file in its own slot without an atomic operation, and the thread that resumes buffering
// issues a barrier on all processors (membarrier). Threads without a slot are counted in Turns::passing.
#pragma once

#include "model/file.hpp"

#include <sys/types.h>

namespace sonde::buffer {

struct alignas(64) BypassSlot {
    std::atomic<File*> file{nullptr};
    std::atomic<bool> is_used{false};
    std::uint32_t calls = 0;                   ///< of the thread that owns the slot
    std::atomic<File*> counted_file{nullptr};  ///< whose calls `passed` are
    BypassedCounts bypassed;
};

extern constinit thread_local BypassSlot* own_bypass_slot __attribute__((tls_model("initial-exec")));

/// Called before the first call. Without membarrier, or if the end of a thread cannot be noticed, no thread gets a
/// slot.
void start_bypass() noexcept;
/// Gives this thread a slot if one is free. Must not be called in a signal handler.
void acquire_bypass_slot() noexcept;
/// Empties the slots in a child of fork, which has one thread.
void reset_bypass_after_fork() noexcept;
/// Called after the mode of the file has changed from Suspended. Returns 0 when no bypass is in flight, 1 when one is,
/// -1 when that is unknown.
int bypass_in_flight(const File& file) noexcept;

/// Registers a call of this thread on `file` that bypasses the buffer; nullptr when the call must use the buffer.
inline BypassSlot* enter_bypass(File* file) noexcept {
    BypassSlot* slot = own_bypass_slot;
    if (slot == nullptr || file == nullptr || file->mode.load(std::memory_order_relaxed) != Mode::Suspended ||
        slot->file.load(std::memory_order_relaxed) != nullptr) {  // a signal handler interrupted such a call
        return nullptr;
    }
    slot->file.store(file, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);  // pairs with the barrier of the thread that resumes buffering
    if (file->mode.load(std::memory_order_acquire) == Mode::Suspended) {
        // Counted per thread: one counter for all threads would move between processor caches at each call.
        constexpr std::uint32_t score = 16;
        const std::int32_t remaining = file->calls_until_retry.load(std::memory_order_relaxed);
        if (remaining > static_cast<std::int32_t>(score)) {
            if (++slot->calls % score == 0) {
                file->calls_until_retry.store(remaining - static_cast<std::int32_t>(score), std::memory_order_relaxed);
            }
            return slot;
        }
    }
    slot->file.store(nullptr, std::memory_order_relaxed);
    return nullptr;
}

/// Assigns the slot of the thread to another file and adds its counts so far to the previous file.
void assign_slot(BypassSlot& slot, File* file) noexcept;
/// Adds the bypassed calls since the last time to the statistics. Requires the lock of the file.
void collect_bypass_counts(File& file) noexcept;

inline void leave_bypass(BypassSlot& slot) noexcept {
    slot.file.store(nullptr, std::memory_order_release);
}

/// Ends the bypass of a read or write that returned `result`. Only this thread writes its counters.
inline void leave_bypass(BypassSlot& slot, bool writes, ssize_t result) noexcept {
    File* const file = slot.file.load(std::memory_order_relaxed);
    if (slot.counted_file.load(std::memory_order_relaxed) != file) [[unlikely]] {
        assign_slot(slot, file);
    }
    std::atomic<std::uint64_t>& calls = slot.bypassed.calls[writes ? 1 : 0];
    std::atomic<std::uint64_t>& bytes = slot.bypassed.bytes[writes ? 1 : 0];
    calls.store(calls.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    bytes.store(bytes.load(std::memory_order_relaxed) + static_cast<std::uint64_t>(result > 0 ? result : 0),
                std::memory_order_relaxed);
    leave_bypass(slot);
}

}  // namespace sonde::buffer
