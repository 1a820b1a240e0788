// SPDX-License-Identifier: Apache-2.0
// Calls on their way to the kernel while their file sleeps. Who wakes the file must wait for them: the buffer does not
// see what they do. They are the scattered calls of programs that nothing here helps, so they must not pay for it: a
// thread notes the file in a place of its own, without an atomic operation, and whoever wakes the file pays instead,
// with a barrier on all processors (membarrier). Threads that have no place count themselves in File::passing.
#pragma once

#include "model/file.hpp"

#include <sys/types.h>

namespace sonde::buffer {

struct alignas(64) BypassSlot {
    std::atomic<File*> file{nullptr};
    std::atomic<bool> is_used{false};
    std::uint32_t calls = 0;              ///< of the thread that has it
    std::atomic<File*> counted{nullptr};  ///< whose calls `passed` are
    Passed passed;
};

extern constinit thread_local BypassSlot* own_bypass_slot __attribute__((tls_model("initial-exec")));

/// Before the first call. Without membarrier, or without a way to learn that a thread has ended, nobody gets a place.
void start_bypass() noexcept;
/// A place for this thread, if there is one left. Not from a handler of the program.
void acquire_bypass_slot() noexcept;
/// In the child of a fork no other thread is on its way.
void bypass_after_fork() noexcept;
/// After the mode of the file has changed from Suspended: 0 when nobody is on the way any more, 1 when somebody still
/// is, -1 when that cannot be known.
int bypass_in_flight(const File& file) noexcept;

/// Notes that this thread goes past the buffer with a call on `file`; nullptr when it must go the ordinary way.
inline BypassSlot* enter_bypass(File* file) noexcept {
    BypassSlot* slot = own_bypass_slot;
    if (slot == nullptr || file == nullptr || file->mode.load(std::memory_order_relaxed) != Mode::Suspended ||
        slot->file.load(std::memory_order_relaxed) != nullptr) {  // we are a handler that interrupted such a call
        return nullptr;
    }
    slot->file.store(file, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);  // the other half of it is the barrier of who wakes the file
    if (file->mode.load(std::memory_order_acquire) == Mode::Suspended) {
        // Counted by the score: a number that all threads of a file write at each call would travel between processors.
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

/// The thread counts for another file from now on: what it has counted so far goes to the one before.
void assign_slot(BypassSlot& slot, File* file) noexcept;
/// What went past since the last time becomes part of the statistics. With the lock of the file held.
void collect_bypass_counts(File& file) noexcept;

inline void leave_bypass(BypassSlot& slot) noexcept {
    slot.file.store(nullptr, std::memory_order_release);
}

/// The same after a call that moved data: `got` is its result. Only this thread writes the numbers.
inline void leave_bypass(BypassSlot& slot, bool writes, ssize_t got) noexcept {
    File* const file = slot.file.load(std::memory_order_relaxed);
    if (slot.counted.load(std::memory_order_relaxed) != file) [[unlikely]] {
        assign_slot(slot, file);
    }
    std::atomic<std::uint64_t>& calls = slot.passed.calls[writes ? 1 : 0];
    std::atomic<std::uint64_t>& bytes = slot.passed.bytes[writes ? 1 : 0];
    calls.store(calls.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    bytes.store(bytes.load(std::memory_order_relaxed) + static_cast<std::uint64_t>(got > 0 ? got : 0),
                std::memory_order_relaxed);
    leave_bypass(slot);
}

}  // namespace sonde::buffer
