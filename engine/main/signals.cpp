// SPDX-License-Identifier: Apache-2.0
#include "main/signals.hpp"

#include <unistd.h>
#include <csignal>
#include <initializer_list>

namespace sonde {
namespace {

ranks::NodeControl* shared_control = nullptr;
volatile std::sig_atomic_t seen = 0;

void on_signal(int number) {
    if (number != SIGALRM && seen != 0) {
        _exit(5);
    }
    seen = number != SIGALRM ? 1 : static_cast<int>(seen);
    std::uint32_t running = 0;
    shared_control->stop.compare_exchange_strong(
        running, number == SIGALRM ? ranks::NodeControl::quit_time_limit : ranks::NodeControl::quit_interrupt);
}

}  // namespace

void install_signals(ranks::NodeControl& control) {
    shared_control = &control;
    struct sigaction action {};
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGALRM}) {
        sigaction(number, &action, nullptr);
    }
    std::signal(SIGPIPE, SIG_IGN);
    std::signal(SIGXFSZ, SIG_IGN);
}

}  // namespace sonde
