// SPDX-License-Identifier: Apache-2.0
// Transitions between the modes of a file: active, suspended, released.
#include "modes/modes.hpp"

#include "cache/pages.hpp"
#include "cache/profitability.hpp"
#include "cache/writeback.hpp"
#include "guards/leases.hpp"
#include "guards/node_locks.hpp"
#include "model/bypass.hpp"
#include "model/state.hpp"
#include "model/unlocked_scope.hpp"

#include <fcntl.h>
#include <sys/stat.h>

namespace sonde::buffer {

namespace {

void sync_offsets(File& file) noexcept {
    for (Description* description = file.descriptors.descriptions; description != nullptr;
         description = description->next) {
        raw::call(SYS_lseek, description->fd, description->offset, SEEK_SET);
    }
}

}  // namespace

void close_gate(File& file) noexcept {
    while (file.active_calls.is_gate_closed) {
        wait_for_change(file);
    }
    file.active_calls.is_gate_closed = true;
    while (file.active_calls.running > 0 || file.active_calls.in_storage > 0) {
        wait_for_change(file);
    }
}

void open_gate(File& file) noexcept {
    file.active_calls.is_gate_closed = false;
    file.change_condition.notify_all();
}

void suspend_buffering(File& file) noexcept {
    close_gate(file);
    if (file.mode.load(std::memory_order_relaxed) == Mode::Active) {
        flush_file(file);
        drop_all_pages(file);
        sync_offsets(file);
        release_lease(file);
        file.mode.store(Mode::Suspended, std::memory_order_seq_cst);
    }
    open_gate(file);
}

void suspend_for(File& file, std::int32_t calls) noexcept {
    suspend_buffering(file);
    if (file.mode.load(std::memory_order_relaxed) == Mode::Suspended) {
        file.is_retry_planned = true;
        file.calls_until_retry.store(calls, std::memory_order_relaxed);
    }
}

namespace {

/// Waits for a limited time for calls that are in flight to the kernel. One may take long, and one may be our own,
/// which a handler of the program has interrupted or left for good with longjmp.
bool wait_for_bypass(File& file) noexcept {
    constexpr int max_tries = 200;
    int in_flight = bypass_in_flight(file);
    for (int tries = 0; in_flight > 0 && tries < max_tries; ++tries) {
        if (own_bypass_slot != nullptr && own_bypass_slot->file.load(std::memory_order_relaxed) == &file) {
            return false;
        }
        file.change_condition.wait(file.lock, 50'000);
        in_flight = bypass_in_flight(file);
    }
    return in_flight == 0;
}

/// Suspends the file for some calls; each repetition is longer.
void schedule_retry(File& file) noexcept {
    file.profitability.suspension_calls = compute_next_suspension_calls(file);
    file.is_retry_planned = true;
    file.calls_until_retry.store(static_cast<std::int32_t>(file.profitability.suspension_calls),
                                 std::memory_order_relaxed);
}

}  // namespace

void resume_buffering(File& file) noexcept {
    if (file.is_watched) {
        return;
    }
    file.is_retry_planned = false;
    if (file.mode.load(std::memory_order_relaxed) != Mode::Suspended || file.active_calls.exclusive_calls > 0) {
        return;
    }
    while (file.active_calls.is_gate_closed) {
        wait_for_change(file);
    }
    if (file.mode.load(std::memory_order_relaxed) != Mode::Suspended) {
        return;  // another thread was quicker
    }
    if (file.append.has_foreign_growth) {
        release_if_grown(file);
        return;
    }
    if (const char* const reason = establish_guard(file)) {
        release_file(file, reason);
        return;
    }
    file.active_calls.is_gate_closed = true;
    file.mode.store(Mode::Active, std::memory_order_seq_cst);
    if (!wait_for_bypass(file)) {
        release_lease(file);
        file.mode.store(Mode::Suspended, std::memory_order_seq_cst);
        schedule_retry(file);
        open_gate(file);
        return;
    }
    for (Description* description = file.descriptors.descriptions; description != nullptr;
         description = description->next) {
        const long offset = raw::call(SYS_lseek, description->fd, 0, SEEK_CUR);
        description->offset = offset >= 0 ? offset : description->offset;
    }
    struct stat status {};
    if (file.descriptors.descriptions != nullptr &&
        raw::call(SYS_fstat, file.descriptors.descriptions->fd, raw::pointer_to_number(&status)) == 0) {
        file.size = file.append.kernel_size = status.st_size;
    }
    file.space_checked_ns = 0;
    open_gate(file);
}

void release_file(File& file, const char* reason) noexcept {
    if (file.mode.load(std::memory_order_relaxed) == Mode::Active) {
        suspend_buffering(file);
    }
    if (file.mode.load(std::memory_order_relaxed) == Mode::Suspended) {
        file.mode.store(Mode::Released, std::memory_order_seq_cst);
        file.release_reason = file.lease.is_lost ? why_lease_lost : reason;
    }
}

void release_if_grown(File& file) noexcept {
    if (file.append.has_foreign_growth && file.mode.load(std::memory_order_relaxed) != Mode::Released) {
        release_file(file, why_grown);
    }
}

void release_if_shared(File& file) noexcept {
    if (file.mode.load(std::memory_order_relaxed) == Mode::Active && file.guard != Guard::Lease &&
        is_claimed_by_others(file)) {
        release_file(file, "another process on this node uses it too");
    }
}

}  // namespace sonde::buffer
