// SPDX-License-Identifier: Apache-2.0
#include "ranks/fork.hpp"
#include "ranks/team_error.hpp"

#include "ranks/launcher.hpp"
#include "ranks/node_team.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <vector>

namespace sonde::ranks {
namespace {

sigset_t make_awaited_signals() {
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGCHLD}) {
        sigaddset(&set, signal);
    }
    return set;
}

class WorkerSupervisor {
 public:
    WorkerSupervisor(std::vector<pid_t> workers, NodeSharedState* head)
        : workers_(std::move(workers)), codes_(workers_.size(), -1), head_(head) {}

    [[noreturn]] void wait_and_exit() {
        const sigset_t set = make_awaited_signals();
        while (reap_workers()) {
            siginfo_t info{};
            const int signal = sigwaitinfo(&set, &info);
            // A signal from the terminal (SI_KERNEL) has already reached the whole process group.
            if (signal > 0 && signal != SIGCHLD && info.si_code != SI_KERNEL) {
                forward_signal(signal);
            } else if (signal > 0 && signal != SIGCHLD) {
                forwarded_signal_ = signal;
            }
        }
        std::fflush(nullptr);
        _exit(select_worst_status(codes_));
    }

 private:
    void forward_signal(int signal) {
        forwarded_signal_ = signal;
        for (std::size_t local_index = 0; local_index < workers_.size(); ++local_index) {
            if (codes_[local_index] < 0) {
                kill(workers_[local_index], signal);
            }
        }
    }

    // Reads the status of all workers that have ended. Returns true while any worker runs.
    bool reap_workers() {
        for (;;) {
            int status = 0;
            const pid_t worker = waitpid(-1, &status, WNOHANG);
            if (worker <= 0) {
                return worker == 0 || errno == EINTR;
            }
            const auto entry = std::find(workers_.begin(), workers_.end(), worker);
            if (entry != workers_.end()) {
                record_end(static_cast<std::size_t>(entry - workers_.begin()), status);
            }
        }
    }

    void record_end(std::size_t local_index, int status) {
        // The other workers notice a death within 100 ms, except when the worker died before it joined.
        if (head_->peers()[local_index].state.load() != Peer::left) {
            head_->peers()[local_index].process.store(static_cast<int>(local_index));
            head_->mark_lost(static_cast<int>(local_index));
        }
        if (WIFEXITED(status)) {
            codes_[local_index] = WEXITSTATUS(status);
            return;
        }
        const int signal = WTERMSIG(status);
        codes_[local_index] = signal == forwarded_signal_ ? 5 : 1;
        // The root reports errors for the team, so the parent reports the death of the root.
        if (local_index == 0 && signal != forwarded_signal_) {
            std::fprintf(stderr,
                         "sonde-engine: process 0 was killed by signal %d (%s); finished phases are kept, and `sonde "
                         "clean` removes what it left on the target\n",
                         signal, strsignal(signal));
        }
    }

    std::vector<pid_t> workers_;
    std::vector<int> codes_;
    NodeSharedState* head_;
    int forwarded_signal_ = 0;
};

std::unique_ptr<Team> become_worker(Arena arena, NodeSharedState* head, int local_index, int processes, pid_t parent) {
    // If the parent is killed, the workers must end too; SIGTERM lets them end in good order.
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) {
        _exit(5);
    }
    ProcessLocation location;
    location.process = location.local_index = local_index;
    location.processes = location.local_count = processes;
    location.node_of.assign(static_cast<std::size_t>(processes), 0);
    location.host = host_name();
    return std::make_unique<NodeTeam>(std::move(arena), head, std::move(location), "forked");
}

}  // namespace

ProcessCapacity read_process_capacity() {
    ProcessCapacity room;
    std::uint64_t max_pid = 0;
    if (std::ifstream("/proc/sys/kernel/pid_max") >> max_pid) {
        std::string average, running;
        std::ifstream load("/proc/loadavg");  // "0.1 0.2 0.3 2/345 6789": 345 threads
        load >> average >> average >> average >> running;
        const std::size_t slash = running.find('/');
        const std::uint64_t running_threads =
            slash == std::string::npos ? 0 : std::strtoull(running.c_str() + slash + 1, nullptr, 10);
        room.process_ids = max_pid > running_threads ? max_pid - running_threads : 0;
    }
    std::ifstream memory("/proc/meminfo");
    std::string name;
    for (std::uint64_t kilobytes = 0; memory >> name >> kilobytes; memory.ignore(80, '\n')) {
        if (name == "MemAvailable:") {
            room.memory = kilobytes << 10U;
        }
    }
    return room;
}

std::string explain_process_shortage(int processes, const ProcessCapacity& available) {
    // Stack, page tables and private pages of an idle process.
    constexpr std::uint64_t min_memory = 256U << 10U;
    const auto requested = static_cast<std::uint64_t>(processes);
    const std::string begin = std::to_string(processes) + " processes are more than this node can hold: ";
    if (available.process_ids > 0 && requested > available.process_ids) {
        return begin + std::to_string(available.process_ids) +
               " process numbers are free (kernel.pid_max); ask for fewer, or for threads (tasks.threads)";
    }
    if (available.memory > 0 && requested > available.memory / min_memory) {
        return begin + "each takes " + std::to_string(min_memory >> 10U) + " KiB at least, and " +
               std::to_string(available.memory >> 20U) +
               " MiB are available; ask for fewer, or for threads (tasks.threads)";
    }
    return {};
}

int select_worst_status(std::span<const int> codes) {
    constexpr std::array<int, 6> order{2, 3, 1, 4, 5, 0};
    auto worst = order.end() - 1;
    for (const int code : codes) {
        const auto rank = std::find(order.begin(), order.end(), code);
        worst = std::min(worst, rank != order.end() ? rank : order.begin() + 1);
    }
    return *worst;
}

std::unique_ptr<Team> fork_team(int processes) {
    if (const std::string why = explain_process_shortage(processes, read_process_capacity()); !why.empty()) {
        throw TeamError(why);
    }
    Arena arena = Arena::create();
    NodeSharedState* head =
        NodeSharedState::construct_in(arena.allocate(NodeSharedState::required_bytes(processes)), processes);
    // Signals are blocked before the first fork, so that none is lost before the wait.
    const sigset_t set = make_awaited_signals();
    sigset_t old_mask;
    sigprocmask(SIG_BLOCK, &set, &old_mask);
    std::fflush(nullptr);
    const pid_t parent = getpid();
    std::vector<pid_t> workers;
    for (int local_index = 0; local_index < processes; ++local_index) {
        const pid_t worker = fork();
        if (worker == 0) {
            sigprocmask(SIG_SETMASK, &old_mask, nullptr);
            return become_worker(std::move(arena), head, local_index, processes, parent);
        }
        if (worker < 0) {
            const std::string why = std::strerror(errno);
            for (const pid_t started : workers) {
                kill(started, SIGKILL);
                waitpid(started, nullptr, 0);
            }
            sigprocmask(SIG_SETMASK, &old_mask, nullptr);
            throw TeamError("cannot start process " + std::to_string(local_index) + " of " + std::to_string(processes) +
                            ": " + why + "; check `ulimit -u` or ask for fewer processes");
        }
        workers.push_back(worker);
    }
    WorkerSupervisor(std::move(workers), head).wait_and_exit();
}

}  // namespace sonde::ranks
