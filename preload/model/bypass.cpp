// SPDX-License-Identifier: Apache-2.0
#include "model/bypass.hpp"

#include "system/oldest_libc.hpp"
#include "system/raw.hpp"

#include <linux/membarrier.h>
#include <pthread.h>
#include <cerrno>
#include <iterator>

SONDE_OLDEST(pthread_key_create);
SONDE_OLDEST(pthread_setspecific);

namespace sonde::buffer {

constinit thread_local BypassSlot* own_bypass_slot __attribute__((tls_model("initial-exec"))) = nullptr;

namespace {

constinit BypassSlot slots[64];
constinit std::atomic<std::uint32_t> bypass_slots_used{0};  ///< none behind that many was ever taken
constinit std::atomic<bool> usable{false};
pthread_key_t at_thread_end;

/// Adds what a place has counted to `to`, and begins anew. Who counts there may be another thread at this moment; what
/// it adds between the two halves is lost, which only a report can notice.
void transfer_bypass_counts(BypassSlot& slot, BypassedCounts& to) noexcept {
    for (int direction = 0; direction < 2; ++direction) {
        to.calls[direction].fetch_add(slot.bypassed.calls[direction].exchange(0, std::memory_order_relaxed),
                                      std::memory_order_relaxed);
        to.bytes[direction].fetch_add(slot.bypassed.bytes[direction].exchange(0, std::memory_order_relaxed),
                                      std::memory_order_relaxed);
    }
}

/// Also called if the thread was canceled during a call.
void release_bypass_slot(void* own_slot) noexcept {
    auto* slot = static_cast<BypassSlot*>(own_slot);
    own_bypass_slot = nullptr;
    assign_slot(*slot, nullptr);
    slot->file.store(nullptr, std::memory_order_release);
    slot->is_used.store(false, std::memory_order_release);
}

bool announce_barriers() noexcept {
    return raw::call(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
}

}  // namespace

void start_bypass() noexcept {
    // Values of the first keys have their place in the thread; for others the C library would call malloc.
    constexpr unsigned preallocated_key_count = 32;
    if (!usable && announce_barriers() && pthread_key_create(&at_thread_end, release_bypass_slot) == 0) {
        usable.store(at_thread_end < preallocated_key_count);
    }
}

void acquire_bypass_slot() noexcept {
    if (own_bypass_slot != nullptr || !usable.load(std::memory_order_relaxed)) {
        return;
    }
    const int saved_errno = errno;
    for (BypassSlot& slot : slots) {
        bool expected = false;
        if (slot.is_used.compare_exchange_strong(expected, true)) {
            if (pthread_setspecific(at_thread_end, &slot) == 0) {
                const auto used = static_cast<std::uint32_t>(&slot - slots) + 1;
                std::uint32_t previous_highest = bypass_slots_used.load();
                while (used > previous_highest && !bypass_slots_used.compare_exchange_weak(previous_highest, used)) {
                }
                own_bypass_slot = &slot;
            } else {
                slot.is_used.store(false);
            }
            break;
        }
    }
    errno = saved_errno;
}

void reset_bypass_after_fork() noexcept {
    usable.store(usable && announce_barriers());
    for (BypassSlot& slot : slots) {
        BypassedCounts of_the_parent;
        transfer_bypass_counts(slot, of_the_parent);
        slot.counted_file.store(nullptr, std::memory_order_relaxed);
        if (&slot != own_bypass_slot) {
            slot.file.store(nullptr, std::memory_order_relaxed);
            slot.is_used.store(false, std::memory_order_relaxed);
        }
    }
}

void assign_slot(BypassSlot& slot, File* file) noexcept {
    if (File* const before = slot.counted_file.load(std::memory_order_relaxed)) {
        transfer_bypass_counts(slot, before->bypassed);
    }
    slot.counted_file.store(file, std::memory_order_relaxed);
}

void collect_bypass_counts(File& file) noexcept {
    const std::uint32_t used = bypass_slots_used.load();
    for (std::uint32_t i = 0; i < used; ++i) {
        BypassSlot& slot = slots[i];
        if (slot.counted_file.load(std::memory_order_relaxed) == &file) {
            transfer_bypass_counts(slot, file.bypassed);
            slot.counted_file.store(nullptr, std::memory_order_relaxed);
        }
    }
    TransferCounts* const directions[] = {&file.statistics.read, &file.statistics.write};
    for (int direction = 0; direction < 2; ++direction) {
        const std::uint64_t calls = file.bypassed.calls[direction].exchange(0, std::memory_order_relaxed);
        const std::uint64_t bytes = file.bypassed.bytes[direction].exchange(0, std::memory_order_relaxed);
        TransferCounts& counts = *directions[direction];
        counts.bypassed += calls;
        counts.calls += calls;
        counts.storage_calls += calls;
        counts.bytes += bytes;
        counts.storage_bytes += bytes;
    }
}

int bypass_in_flight(const File& file) noexcept {
    bool has_other_slots = false;
    for (const BypassSlot& slot : slots) {
        has_other_slots |= &slot != own_bypass_slot && slot.is_used.load(std::memory_order_seq_cst);
    }
    // After the barrier, each thread either sees the new mode or has stored its file in its slot.
    if (has_other_slots && raw::call(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0) {
        return -1;
    }
    for (const BypassSlot& slot : slots) {
        if (slot.file.load(std::memory_order_acquire) == &file) {
            return 1;
        }
    }
    return file.pass_through_calls.load(std::memory_order_seq_cst) > 0 ? 1 : 0;
}

}  // namespace sonde::buffer
