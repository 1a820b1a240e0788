// SPDX-License-Identifier: Apache-2.0
#include "stretch/trap.hpp"

#include "system/critical.hpp"
#include "system/memory.hpp"
#include "system/oldest_libc.hpp"
#include "system/raw.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ucontext.h>
#include <time.h>
#include <cerrno>
#include <cstdint>
#include <cstring>

SONDE_OLDEST(dlsym);

namespace sonde::stretch {

volatile unsigned char trap_closed = 0;
constinit const char* single_threaded = nullptr;

namespace {

// Of the kernel; older headers do not have them.
constexpr long set_dispatch = 59;    // PR_SET_SYSCALL_USER_DISPATCH
constexpr int code_of_dispatch = 2;  // SYS_USER_DISPATCH
constexpr std::size_t kernel_mask_bytes = 8;
constexpr std::uint64_t bit_of_sigsys = std::uint64_t{1} << (SIGSYS - 1);

/// What a program writes is in the file after this time at the latest, also when it makes no system call for hours.
constexpr long longest_stretch_ns = 200'000'000;
constexpr long look_again_ns = 2'000'000;
constexpr std::size_t stack_bytes = 128U << 10U;

struct Trap {
    void (*settle)(bool) noexcept = nullptr;
    void (*when_ready)() noexcept = nullptr;
    const char* why_not = nullptr;
    bool ready = false;
    bool is_set = false;
    bool clock_runs = false;
    volatile bool late = false;
    unsigned harmless = 0;
    int timer = -1;
    void* stack = nullptr;
    std::uintptr_t code = 0, code_bytes = 0;
};
constinit Trap trap;

#if defined(__x86_64__)

struct KernelAction {
    void (*handler)(int, siginfo_t*, void*);
    unsigned long flags;
    void (*restorer)();
    std::uint64_t mask;
};
static_assert(sizeof(KernelAction) == 32);

asm(".text\n.type sonde_trap_return,@function\nsonde_trap_return:\n  movq $15, %rax\n  syscall\n"
    ".size sonde_trap_return,.-sonde_trap_return\n");
extern "C" __attribute__((visibility("hidden"))) void sonde_trap_return();

int find_own_code(dl_phdr_info* object, std::size_t, void*) noexcept {
    const auto here = reinterpret_cast<std::uintptr_t>(&find_own_code);
    for (int i = 0; i < object->dlpi_phnum; ++i) {
        const ElfW(Phdr)& part = object->dlpi_phdr[i];
        const std::uintptr_t begin = object->dlpi_addr + part.p_vaddr;
        if (part.p_type == PT_LOAD && here >= begin && here - begin < part.p_memsz) {
            trap.code = begin;
            trap.code_bytes = part.p_memsz;
            return 1;
        }
    }
    return 0;
}

/// A filter on system calls may end the process at the first one that it does not know.
bool has_filter() noexcept {
    const long fd = raw::call(SYS_openat, AT_FDCWD, raw::number("/proc/self/status"), O_RDONLY | O_CLOEXEC);
    char text[4096];
    const long got = fd >= 0 ? raw::call(SYS_read, fd, raw::number(text), sizeof(text) - 1) : -1;
    if (fd >= 0) {
        raw::call(SYS_close, fd);
    }
    if (got <= 0) {
        return true;  // nobody knows
    }
    text[got] = 0;
    const char* line = std::strstr(text, "\nSeccomp:");
    return line == nullptr || std::strncmp(line, "\nSeccomp:\t0", 11) != 0;
}

/// Nobody, in this process or outside, can learn or change anything by these that has to do with files: memory of the
/// process alone, clocks, its own numbers. malloc() makes them at any time.
bool is_harmless(long call, const greg_t* registers) noexcept {
    switch (call) {
        case SYS_brk:
        case SYS_munmap:
        case SYS_mprotect:
        case SYS_madvise:
        case SYS_mremap:
        case SYS_clock_gettime:
        case SYS_gettimeofday:
        case SYS_time:
        case SYS_getcpu:
        case SYS_getpid:
        case SYS_gettid:
        case SYS_getuid:
        case SYS_geteuid:
        case SYS_getgid:
        case SYS_getegid:
        case SYS_getrandom:
        case SYS_sched_yield:
            return true;
        case SYS_mmap: {
            const auto flags = static_cast<int>(registers[REG_R10]);
            return (flags & MAP_ANONYMOUS) != 0 && (flags & MAP_TYPE) == MAP_PRIVATE;
        }
        default:
            return false;
    }
}

void set_timer(long ns) noexcept {
    itimerspec when{};
    when.it_value.tv_nsec = ns;
    raw::call(SYS_timer_settime, trap.timer, 0, raw::number(&when), 0);
}

/// Somebody else's SIGSYS: what would have happened without us.
void as_without_us() noexcept {
    const KernelAction usual{};
    raw::call(SYS_rt_sigaction, SIGSYS, raw::number(&usual), 0, kernel_mask_bytes);
    raw::call(SYS_tgkill, raw::call(SYS_getpid), raw::call(SYS_gettid), SIGSYS);
}

void on_trap(int, siginfo_t* info, void* context) {
    if (info->si_code == SI_TIMER) {
        if (system::Critical::inside()) {
            trap.late = true;
            set_timer(look_again_ns);
        } else if (trap.is_set) {
            trap.settle(true);
        }
        return;
    }
    if (info->si_code != code_of_dispatch) {
        if (trap.is_set && !system::Critical::inside()) {
            trap.settle(true);
        }
        as_without_us();
        return;
    }
    greg_t* registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
    const long call = info->si_syscall;
    if (trap_closed != 0 && is_harmless(call, registers)) {
        ++trap.harmless;
        registers[REG_RAX] = raw::call(call, registers[REG_RDI], registers[REG_RSI], registers[REG_RDX],
                                       registers[REG_R10], registers[REG_R8], registers[REG_R9]);
        return;
    }
    open_trap();
    if (!system::Critical::inside()) {
        trap.settle(true);
    }
    // The program makes its call again, now for the kernel: blocking, signals and restarts are as they were.
    registers[REG_RIP] -= 2;
    registers[REG_RAX] = call;
}

bool make_timer() noexcept {
    struct {
        sigval value;
        int signal, notify, thread;
        int pad[12];
    } event{};
    event.signal = SIGSYS;
    event.notify = SIGEV_THREAD_ID;
    event.thread = static_cast<int>(raw::call(SYS_gettid));
    return raw::call(SYS_timer_create, CLOCK_MONOTONIC, raw::number(&event), raw::number(&trap.timer)) == 0;
}

/// A program that has overflowed its stack, or uses small ones of its own, must not fail because of our handler.
void make_stack() noexcept {
    stack_t now{};
    if (raw::call(SYS_sigaltstack, 0, raw::number(&now)) != 0 || (now.ss_flags & SS_DISABLE) == 0) {
        return;
    }
    trap.stack = trap.stack != nullptr ? trap.stack : system::map_bytes(stack_bytes, true);
    if (trap.stack != nullptr) {
        stack_t ours{};
        ours.ss_sp = trap.stack;
        ours.ss_size = stack_bytes;
        raw::call(SYS_sigaltstack, raw::number(&ours), 0);
    }
}

const char* make_ready() noexcept {
    if (single_threaded == nullptr) {
        return "this C library does not say whether a program has threads (glibc 2.32 does)";
    }
    dl_iterate_phdr(find_own_code, nullptr);
    if (trap.code == 0) {
        return "the library does not find its own code";
    }
    if (has_filter()) {
        return "a filter for system calls is in force (seccomp)";
    }
    KernelAction now{};
    raw::call(SYS_rt_sigaction, SIGSYS, 0, raw::number(&now), kernel_mask_bytes);
    if (now.handler != nullptr) {
        return "the program handles SIGSYS itself";
    }
    if (raw::call(SYS_prctl, set_dispatch, 1, static_cast<long>(trap.code), static_cast<long>(trap.code_bytes),
                  raw::number(const_cast<unsigned char*>(&trap_closed))) != 0) {
        return "this kernel cannot stop a program at its next system call (Linux 5.11 can)";
    }
    raw::call(SYS_prctl, set_dispatch, 0, 0, 0, 0);
    if (!make_timer()) {
        return "there is no timer to be had";
    }
    make_stack();
    KernelAction ours{};
    ours.handler = on_trap;
    ours.flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART | 0x04000000UL;
    ours.restorer = sonde_trap_return;
    ours.mask = ~std::uint64_t{0};
    raw::call(SYS_rt_sigaction, SIGSYS, raw::number(&ours), 0, kernel_mask_bytes);
    return nullptr;
}

bool is_blocked() noexcept {
    std::uint64_t mask = 0;
    raw::call(SYS_rt_sigprocmask, SIG_BLOCK, 0, raw::number(&mask), kernel_mask_bytes);
    return (mask & bit_of_sigsys) != 0;
}

#endif

}  // namespace

void prepare_trap(void (*settle)(bool trapped) noexcept, void (*when_ready)() noexcept) noexcept {
    trap.settle = settle;
    trap.when_ready = when_ready;
    single_threaded = static_cast<const char*>(dlsym(RTLD_DEFAULT, "__libc_single_threaded"));
}

#if defined(__x86_64__)

bool set_trap() noexcept {
    if (!trap_is_possible()) {
        return false;
    }
    if (!trap.ready) {
        trap.why_not = make_ready();
        if (trap.why_not != nullptr) {
            return false;
        }
        trap.ready = true;
        trap.when_ready();
    }
    if (is_blocked() || (trap.timer < 0 && !make_timer())) {
        return false;
    }
    if (raw::call(SYS_prctl, set_dispatch, 1, static_cast<long>(trap.code), static_cast<long>(trap.code_bytes),
                  raw::number(const_cast<unsigned char*>(&trap_closed))) != 0) {
        return false;
    }
    trap.harmless = 0;
    trap.late = false;
    trap.is_set = true;
    return true;
}

void start_clock() noexcept {
    set_timer(longest_stretch_ns);
    trap.clock_runs = true;
}

void take_trap_away() noexcept {
    open_trap();
    if (trap.is_set) {
        trap.is_set = false;
        raw::call(SYS_prctl, set_dispatch, 0, 0, 0, 0);
        if (trap.clock_runs) {
            trap.clock_runs = false;
            set_timer(0);
        }
    }
}

bool is_trap_handler(const void* handler) noexcept {
    return handler == reinterpret_cast<const void*>(&on_trap);
}

void forbid_trap(const char* reason) noexcept {
    if (trap.settle == nullptr || trap.why_not != nullptr) {
        return;
    }
    if (trap.is_set) {
        trap.settle(false);
    }
    trap.why_not = reason;
    if (trap.ready) {
        trap.ready = false;
        const KernelAction usual{};
        raw::call(SYS_rt_sigaction, SIGSYS, raw::number(&usual), 0, kernel_mask_bytes);
        raw::call(SYS_timer_delete, trap.timer);
        trap.timer = -1;
    }
}

#else

bool set_trap() noexcept {
    trap.why_not = "the next system call cannot be noticed on this machine (x86-64 only)";
    return false;
}
void start_clock() noexcept {
}
void take_trap_away() noexcept {
}
bool is_trap_handler(const void*) noexcept {
    return false;
}
void forbid_trap(const char* reason) noexcept {
    trap.why_not = reason;
}

#endif

bool trap_is_possible() noexcept {
    return trap.why_not == nullptr && single_threaded != nullptr && *single_threaded != 0;
}

bool time_is_up() noexcept {
    return trap.late;
}

unsigned harmless_calls() noexcept {
    return trap.harmless;
}

const char* why_no_trap() noexcept {
    if (trap.why_not != nullptr) {
        return trap.why_not;
    }
    return single_threaded != nullptr && *single_threaded == 0 ? "the program has several threads" : nullptr;
}

void trap_after_fork() noexcept {
    open_trap();
    trap.is_set = trap.clock_runs = false;
    trap.timer = -1;
}

bool is_trap_stack(const void* stack) noexcept {
    return stack != nullptr && stack == trap.stack;
}

}  // namespace sonde::stretch
