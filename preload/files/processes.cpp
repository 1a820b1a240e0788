// SPDX-License-Identifier: Apache-2.0
// Prepares all files for fork(), exec() and the end of the process.
#include "files/processes.hpp"

#include "cache/pages.hpp"
#include "cache/writeback.hpp"
#include "files/lost_errors.hpp"
#include "files/summary.hpp"
#include "guards/node_locks.hpp"
#include "model/bypass.hpp"
#include "model/candidate_table.hpp"
#include "model/registry.hpp"
#include "model/state.hpp"
#include "modes/modes.hpp"
#include "modes/watching.hpp"
#include "workers/pool.hpp"

#include <fcntl.h>
#include <sys/resource.h>

namespace sonde::buffer {

namespace {

/// After a call that the buffer cannot execute, this many calls bypass it before buffering is resumed.
constexpr std::int32_t calls_until_retry_after_vfork = 64;

bool is_closed_in_child(const File& file) noexcept {
    for (int fd = 0; fd <= highest.load(std::memory_order_relaxed); ++fd) {
        const Description* description = table[fd].load(std::memory_order_relaxed);
        if (description != nullptr && description->file.load(std::memory_order_relaxed) == &file &&
            (raw::call(SYS_fcntl, fd, F_GETFD) & FD_CLOEXEC) == 0) {
            return false;
        }
    }
    return true;
}

}  // namespace

void prepare_child_process(ChildKind kind) noexcept {
    const system::Critical critical;
    if (kind != ChildKind::Vanishing) {
        exclude_descriptors_after_fork(kind == ChildKind::Copy);
    }
    if (!has_registered_descriptors()) {
        return;
    }
    system::LockGuard lock_guard(state.files_lock);
    switch (kind) {
        case ChildKind::Copy:
            for_each_file([](File& file) { release_file(file, "a child process shares it"); });
            break;
        case ChildKind::Program:
            for_each_file([](File& file) {
                if (is_closed_in_child(file)) {
                    flush_file(file);
                } else {
                    release_file(file, "a child process inherited it");
                }
            });
            break;
        case ChildKind::Vanishing:
            for_each_file([](File& file) {
                if (file.mode.load(std::memory_order_relaxed) == Mode::Active) {
                    suspend_buffering(file);
                    file.is_retry_planned = true;
                    file.calls_until_retry.store(calls_until_retry_after_vfork, std::memory_order_relaxed);
                }
            });
            break;
    }
}

void prepare_fork_of_files() noexcept {
    ++system::thread_state.depth;  // stays raised until resume_after_fork() in parent and child
    prepare_child_process(ChildKind::Copy);
    state.files_lock.lock();
}

void resume_after_fork(bool child) noexcept {
    if (child) {
        // Other threads of the parent may have held any of these locks; all files are released, so the guarded data is
        // consistent.
        state.files_lock.reset();
        state.file_slab.reset_lock();
        state.description_slab.reset_lock();
        state.page_slab.reset_lock();
        release_pages_of_parent();
        for (File* first : state.files) {
            for (File* file = first; file != nullptr; file = file->in_bucket) {
                file->lock.reset();
                file->change_condition.reset();
                file->pass_through_calls.store(0, std::memory_order_relaxed);
                file->active_calls.running = file->active_calls.in_storage = 0;
                file->active_calls.is_gate_closed = false;
                file->statistics = {};
                file->bypassed.calls[0] = file->bypassed.calls[1] = file->bypassed.bytes[0] = file->bypassed.bytes[1] =
                    0;
            }
        }
        state.few_call_totals.files = state.few_call_totals.calls = state.few_call_totals.bytes = 0;
        clear_summary();
        reset_watching_after_fork();
        reset_bypass_after_fork();
        reset_node_locks_after_fork();
        reset_workers_after_fork();
    } else {
        state.files_lock.unlock();
    }
    --system::thread_state.depth;
    if (system::thread_state.depth == 0 && system::thread_state.has_deferred_signal) {
        system::deliver_signals();
    }
}

void disable_buffering(const char* reason) noexcept {
    const system::Critical critical;
    if (state.is_disabled.exchange(true)) {
        return;
    }
    static const char* why;
    why = reason;
    system::LockGuard lock_guard(state.files_lock);
    for_each_file([](File& file) { release_file(file, why); });
}

void finish_buffering() noexcept {
    const system::Critical critical;
    if (table == nullptr) {
        return;
    }
    state.has_ended.store(true);
    constexpr std::int64_t patience_ns = 2'000'000'000;
    if (!has_registered_descriptors() || !state.files_lock.try_lock(patience_ns)) {
        return;
    }
    for_each_file(
        [](File& file) {
            flush_file(file);
            if (file.active_calls.running == 0 && file.active_calls.in_storage == 0 &&
                !file.active_calls.is_gate_closed) {
                release_file(file, nullptr);
            }
            report_unseen_errors(file);
        },
        patience_ns);
    state.files_lock.unlock();
}

void read_file_size_limit() noexcept {
    struct rlimit limit {};
    if (raw::call(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, raw::pointer_to_number(&limit)) == 0) {
        state.file_size_limit.store(limit.rlim_cur, std::memory_order_relaxed);
    }
}

}  // namespace sonde::buffer
