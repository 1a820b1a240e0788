// SPDX-License-Identifier: Apache-2.0
// Knows SIGBUS and how to come back from it.
#include "backends/fault_guard.hpp"

#include <unistd.h>
#include <atomic>
#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <mutex>

namespace sonde::backends {

namespace {

struct FaultWatch {
    sigjmp_buf jump_target;
    std::uintptr_t range_begin = 0, range_end = 0;  ///< addresses whose faults are ours
    const std::byte* fault_address = nullptr;
};

// A signal handler can receive data only through thread-local state.
thread_local FaultWatch* current_watch = nullptr;
struct sigaction previous {};

void on_bus_error(int signal, siginfo_t* info, void* context) {
    FaultWatch* const active = current_watch;
    const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
    if (active != nullptr && address >= active->range_begin && address < active->range_end) {
        active->fault_address = static_cast<const std::byte*>(info->si_addr);
        siglongjmp(active->jump_target, 1);
    }
    if ((previous.sa_flags & SA_SIGINFO) != 0) {
        previous.sa_sigaction(signal, info, context);
    } else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
        previous.sa_handler(signal);
    } else {
        // Back to the instruction that faulted, which now ends the process as it would have without us.
        ::sigaction(signal, &previous, nullptr);
    }
}

}  // namespace

void install_fault_guard() {
    static std::once_flag once;
    std::call_once(once, [] {
        struct sigaction action {};
        action.sa_sigaction = on_bus_error;
        // NODEFER: the handler is left by a jump that does not restore the signal mask, which saves a system call a
        // copy.
        action.sa_flags = SA_SIGINFO | SA_NODEFER;
        ::sigemptyset(&action.sa_mask);
        ::sigaction(SIGBUS, &action, &previous);
    });
}

const std::byte* guarded_copy(void* to, const void* from, std::size_t bytes, MappedRange mapped) noexcept {
    static const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    FaultWatch guard;
    // Some faults are reported with the address of their page.
    guard.range_begin = reinterpret_cast<std::uintptr_t>(mapped.base) & ~(page - 1);
    guard.range_end = reinterpret_cast<std::uintptr_t>(mapped.base) + mapped.bytes;
    if (sigsetjmp(guard.jump_target, 0) != 0) {
        current_watch = nullptr;
        return guard.fault_address;
    }
    current_watch = &guard;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    std::memcpy(to, from, bytes);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    current_watch = nullptr;
    return nullptr;
}

}  // namespace sonde::backends
