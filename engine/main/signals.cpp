// SPDX-License-Identifier: Apache-2.0
#include "main/signals.hpp"

#include <time.h>
#include <unistd.h>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace sonde {
namespace {

ranks::NodeControl* shared_control = nullptr;
bool is_message_printer = false;
std::atomic<std::int64_t> first_stop_request_ns{0};  // CLOCK_MONOTONIC ns
static_assert(std::atomic<std::int64_t>::is_always_lock_free);

// Uses only async-signal-safe calls.
void handle_signal(int number) {
    constexpr std::int64_t echo_ns = 333'000'000;
    const int error = errno;
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    const std::int64_t now_ns = static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
    std::int64_t first = 0;
    if (number != SIGALRM && !first_stop_request_ns.compare_exchange_strong(first, now_ns) &&
        now_ns - first > echo_ns) {
        constexpr std::string_view sentence =
            "sonde-engine: ended at once by a second signal; `sonde clean` removes what is left on the target\n";
        if (is_message_printer && ::write(STDERR_FILENO, sentence.data(), sentence.size()) < 0) {
            _exit(5);
        }
        _exit(5);
    }
    std::uint32_t running = 0;
    shared_control->stop.compare_exchange_strong(
        running, number == SIGALRM ? ranks::NodeControl::quit_time_limit : ranks::NodeControl::quit_interrupt);
    errno = error;
}

}  // namespace

// SIGUSR1: users ask schedulers to send it before a time limit, and srun forwards it to its tasks.
sigset_t make_stop_signal_set(bool children) {
    sigset_t set;
    sigemptyset(&set);
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) {
        sigaddset(&set, number);
    }
    if (children) {
        sigaddset(&set, SIGCHLD);
    }
    return set;
}

void install_signals(ranks::NodeControl& control, bool prints_message) {
    shared_control = &control;
    is_message_printer = prints_message;
    struct sigaction action {};
    action.sa_handler = handle_signal;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGALRM}) {
        sigaction(number, &action, nullptr);
    }
    std::signal(SIGPIPE, SIG_IGN);
    std::signal(SIGXFSZ, SIG_IGN);
    // A stage starts with these signals blocked, so that none kills it before the handlers are installed.
    const sigset_t set = make_stop_signal_set(true);
    sigprocmask(SIG_UNBLOCK, &set, nullptr);
}

}  // namespace sonde
