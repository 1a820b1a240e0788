// SPDX-License-Identifier: Apache-2.0
// Handlers of the program never run while we hold a lock: ours stands in front, and sends the signal once more when it
// comes at such a moment, with everything blocked until we are through. Signals that a fault of the thread itself
// raised cannot wait, and do not.
#include "intercept/errors.hpp"
#include "intercept/lifetime.hpp"
#include "system/critical.hpp"

#include <sys/ucontext.h>
#include <cstring>

namespace {

using namespace sonde;

constexpr int max_signals = 65;
constexpr std::size_t kernel_mask_bytes = 8;

/// The signal handler that the program installed.
struct ProgramAction {
    std::atomic<void*> handler{nullptr};
    std::atomic<bool> once{false};     ///< SA_RESETHAND
    std::atomic<bool> details{false};  ///< SA_SIGINFO
};
constinit ProgramAction program_actions[max_signals];
thread_local unsigned long mask_before __attribute__((tls_model("initial-exec"))) = 0;
thread_local bool mask_changed __attribute__((tls_model("initial-exec"))) = false;
thread_local std::uint64_t deferred_signals __attribute__((tls_model("initial-exec"))) =
    0;  ///< put off without a frame

bool is_fault(int number) noexcept {
    return number == SIGSEGV || number == SIGBUS || number == SIGFPE || number == SIGILL || number == SIGTRAP ||
           number == SIGSYS;
}

void deliver_deferred_signals() {
    system::thread_state.has_deferred_signal = false;
    while (deferred_signals != 0) {
        const int number = __builtin_ctzll(deferred_signals) + 1;
        deferred_signals &= deferred_signals - 1;
        raw::call(SYS_tgkill, raw::call(SYS_getpid), raw::call(SYS_gettid), number);
    }
    if (mask_changed) {
        mask_changed = false;
        raw::call(SYS_rt_sigprocmask, SIG_SETMASK, raw::pointer_to_number(&mask_before), 0, kernel_mask_bytes);
    }
}

void defer_signal(int number, bool details, siginfo_t* info, void* context) noexcept {
    const long pid = raw::call(SYS_getpid);
    const long thread = raw::call(SYS_gettid);
    if (!details || raw::call(SYS_rt_tgsigqueueinfo, pid, thread, number, raw::pointer_to_number(info)) != 0) {
        raw::call(SYS_tgkill, pid, thread, number);
    }
    auto* interrupted = static_cast<ucontext_t*>(context);
    if (!mask_changed) {
        std::memcpy(&mask_before, &interrupted->uc_sigmask, kernel_mask_bytes);
        mask_changed = true;
    }
    system::thread_state.has_deferred_signal = true;
    std::memset(&interrupted->uc_sigmask, 0xFF, kernel_mask_bytes);  // in force when this handler returns
}

void handle_signal_with_details(int number, siginfo_t* info, void* context) {
    ProgramAction& registered = program_actions[number];
    if (system::Critical::is_in_library() && !is_fault(number)) {
        defer_signal(number, registered.details.load(std::memory_order_relaxed), info, context);
        return;
    }
    void* handler = registered.handler.load(std::memory_order_acquire);
    if (registered.once.exchange(false)) {
        struct sigaction default_action {};
        default_action.sa_handler = SIG_DFL;
        NEXT(sigaction)(number, &default_action, nullptr);
    }
    if (handler != nullptr) {
        reinterpret_cast<void (*)(int, siginfo_t*, void*)>(handler)(number, info, context);
    }
}

/// For the moment between signal() of libc and ours: without SA_SIGINFO there may be no details and no frame.
void handle_signal(int number) {
    if (system::Critical::is_in_library() && !is_fault(number)) {
        deferred_signals |= std::uint64_t{1} << static_cast<unsigned>(number - 1);
        system::thread_state.has_deferred_signal = true;
        return;
    }
    if (void* handler = program_actions[number].handler.load(std::memory_order_acquire)) {
        reinterpret_cast<void (*)(int)>(handler)(number);
    }
}

bool is_wrapper_needed(int number) noexcept {
    return (buffer::table != nullptr || trace::is_tracing()) && number > 0 && number < max_signals;
}

bool is_handler(const void* address) noexcept {
    return address != reinterpret_cast<void*>(SIG_DFL) && address != reinterpret_cast<void*>(SIG_IGN) &&
           address != reinterpret_cast<void*>(SIG_ERR);
}

bool is_wrapper(const void* address) noexcept {
    return address == reinterpret_cast<void*>(&handle_signal_with_details) ||
           address == reinterpret_cast<void*>(&handle_signal);
}

/// The kernel then calls handle_signal_with_details() with all that it needs, and does not forget it after one signal.
/// x86-64 hands over the interrupted frame in any case, aarch64 only with SA_SIGINFO.
void install_wrapper(struct sigaction& action) noexcept {
    action.sa_sigaction = handle_signal_with_details;
    action.sa_flags = (action.sa_flags & ~static_cast<int>(SA_RESETHAND)) | SA_SIGINFO;
}

/// Fills in what the program would read without the library.
void fill_program_action(struct sigaction& shown_action, void* handler, bool once, bool details) noexcept {
    shown_action.sa_handler = reinterpret_cast<void (*)(int)>(handler);
    shown_action.sa_flags = (shown_action.sa_flags & ~SA_SIGINFO) | (once ? static_cast<int>(SA_RESETHAND) : 0);
    shown_action.sa_flags |= details ? SA_SIGINFO : 0;
}

template <class Real>
int set_action(int number, const struct sigaction* action, struct sigaction* before, Real real) {
    if (!is_wrapper_needed(number)) {
        return real(action, before);
    }
    system::deliver_signals = deliver_deferred_signals;
    ProgramAction& registered = program_actions[number];
    void* const old_handler = registered.handler.load(std::memory_order_acquire);
    const bool old_once = registered.once.load(std::memory_order_relaxed);
    const bool old_details = registered.details.load(std::memory_order_relaxed);
    struct sigaction wrapped_action {};
    if (action != nullptr) {
        wrapped_action = *action;
        void* handler = reinterpret_cast<void*>(action->sa_handler);
        if (is_handler(handler)) {
            registered.details.store((action->sa_flags & SA_SIGINFO) != 0, std::memory_order_relaxed);
            registered.once.store((static_cast<unsigned>(action->sa_flags) & SA_RESETHAND) != 0,
                                  std::memory_order_relaxed);
            registered.handler.store(handler, std::memory_order_release);
            install_wrapper(wrapped_action);
        }
    }
    const int done = real(action != nullptr ? &wrapped_action : nullptr, before);
    if (done == 0 && before != nullptr && is_wrapper(reinterpret_cast<void*>(before->sa_handler))) {
        fill_program_action(*before, old_handler, old_once, old_details);
    }
    if (done != 0 && action != nullptr) {
        registered.handler.store(old_handler, std::memory_order_release);
        registered.once.store(old_once, std::memory_order_relaxed);
        registered.details.store(old_details, std::memory_order_relaxed);
    }
    return done;
}

/// signal() and its relatives: libc decides about the flags, also whether the handler stays.
template <class Real>
Handler set_handler(int number, Handler handler, bool once, Real real) {
    if (!is_wrapper_needed(number)) {
        return real(handler);
    }
    system::deliver_signals = deliver_deferred_signals;
    ProgramAction& registered = program_actions[number];
    void* const old_handler = registered.handler.load(std::memory_order_acquire);
    const bool ours = is_handler(reinterpret_cast<void*>(handler));
    if (ours) {
        registered.details.store(false, std::memory_order_relaxed);
        registered.once.store(once, std::memory_order_relaxed);
        registered.handler.store(reinterpret_cast<void*>(handler), std::memory_order_release);
    }
    const Handler before = real(ours ? handle_signal : handler);
    if (before == SIG_ERR && ours) {
        registered.handler.store(old_handler, std::memory_order_release);
    }
    struct sigaction now {};
    if (ours && before != SIG_ERR && NEXT(sigaction)(number, nullptr, &now) == 0) {
        install_wrapper(now);
        NEXT(sigaction)(number, &now, nullptr);
    }
    return is_wrapper(reinterpret_cast<void*>(before)) ? reinterpret_cast<Handler>(old_handler) : before;
}

}  // namespace

int wrap_sigaction(int number, const struct sigaction* action, struct sigaction* before) {
    return set_action(number, action, before, [=](auto* a, auto* b) { return NEXT(sigaction)(number, a, b); });
}
int wrap___sigaction(int number, const struct sigaction* action, struct sigaction* before) {
    return set_action(number, action, before, [=](auto* a, auto* b) { return NEXT(__sigaction)(number, a, b); });
}
Handler wrap_signal(int number, Handler handler) {
    return set_handler(number, handler, false, [=](Handler installed) { return NEXT(signal)(number, installed); });
}
Handler wrap_bsd_signal(int number, Handler handler) {
    return set_handler(number, handler, false, [=](Handler installed) { return NEXT(bsd_signal)(number, installed); });
}
Handler wrap_ssignal(int number, Handler handler) {
    return set_handler(number, handler, false, [=](Handler installed) { return NEXT(ssignal)(number, installed); });
}
Handler wrap_sysv_signal(int number, Handler handler) {
    return set_handler(number, handler, true, [=](Handler installed) { return NEXT(sysv_signal)(number, installed); });
}
Handler wrap___sysv_signal(int number, Handler handler) {
    return set_handler(number, handler, true,
                       [=](Handler installed) { return NEXT(__sysv_signal)(number, installed); });
}
Handler wrap_sigset(int number, Handler handler) {
    return set_handler(number, handler, false, [=](Handler installed) { return NEXT(sigset)(number, installed); });
}
