// SPDX-License-Identifier: Apache-2.0
#include "guards/lease_thread.hpp"

#include "system/lock.hpp"
#include "system/threads.hpp"

#include <signal.h>
#include <cerrno>
#include <cstdint>

namespace sonde::buffer {

namespace {

struct LeaseThread {
    system::Lock lock;
    system::Condition change_condition;
    std::atomic<int> thread_id{0};  ///< of the kernel; 0: it is not there
    bool failed = false;
    std::atomic<bool> is_ending{false};
    void (*handle_break)(int fd) noexcept = nullptr;
};
constinit LeaseThread lease_thread;

/// Leases are also checked at this interval, because signals may be lost when the program changes its user.
constexpr std::int64_t lease_check_interval_ns = 1'000'000'000;
constexpr std::int64_t thread_end_timeout_ns = 200'000'000;

void* wait_for_lease_breaks(void*) noexcept {
    lease_thread.lock.lock();
    lease_thread.thread_id = static_cast<int>(raw::call(SYS_gettid));
    lease_thread.change_condition.notify_all();
    lease_thread.lock.unlock();
    // If the signal queue is full, the kernel sends SIGIO without the number of the descriptor.
    const std::uint64_t awaited = std::uint64_t{1} << (lease_signal - 1U) | std::uint64_t{1} << (SIGIO - 1U);
    while (!lease_thread.is_ending.load(std::memory_order_relaxed)) {
        siginfo_t info{};
        const timespec limit{lease_check_interval_ns / 1'000'000'000, lease_check_interval_ns % 1'000'000'000};
        const long signal_number =
            raw::call(SYS_rt_sigtimedwait, raw::pointer_to_number(&awaited), raw::pointer_to_number(&info),
                      raw::pointer_to_number(&limit), sizeof(awaited));
        lease_thread.handle_break(signal_number == lease_signal ? info.si_fd : -1);
    }
    lease_thread.lock.lock();
    lease_thread.thread_id = 0;
    lease_thread.change_condition.notify_all();
    lease_thread.lock.unlock();
    return nullptr;
}

}  // namespace

void set_lease_break_handler(void (*handler)(int fd) noexcept) noexcept {
    lease_thread.handle_break = handler;
}

int start_lease_thread() noexcept {
    const int number = lease_thread.thread_id.load(std::memory_order_acquire);
    if (number != 0 || lease_thread.failed || lease_thread.is_ending.load(std::memory_order_relaxed)) {
        return number;
    }
    const int saved_errno = errno;
    system::LockGuard lock_guard(lease_thread.lock);
    if (lease_thread.thread_id == 0 && !lease_thread.failed) {
        lease_thread.failed = start_thread(wait_for_lease_breaks) == 0;
        while (lease_thread.thread_id == 0 && !lease_thread.failed) {
            lease_thread.change_condition.wait(lease_thread.lock, lease_check_interval_ns);
        }
    }
    errno = saved_errno;
    return lease_thread.thread_id;
}

bool has_lease_thread() noexcept {
    return lease_thread.thread_id.load(std::memory_order_relaxed) != 0;
}

void end_lease_thread() noexcept {
    system::LockGuard lock_guard(lease_thread.lock);
    lease_thread.is_ending = true;
    const int number = lease_thread.thread_id;
    if (number == 0) {
        return;
    }
    raw::call(SYS_tgkill, raw::call(SYS_getpid), number, lease_signal);
    for (std::int64_t waited = 0; lease_thread.thread_id != 0 && waited < thread_end_timeout_ns; waited += 1'000'000) {
        lease_thread.change_condition.wait(lease_thread.lock, 1'000'000);
    }
    wait_for_thread_end(number);
}

void reset_lease_thread_after_fork() noexcept {
    lease_thread.lock.reset();
    lease_thread.change_condition.reset();
    lease_thread.thread_id = 0;
    lease_thread.failed = lease_thread.is_ending = false;
}

}  // namespace sonde::buffer
