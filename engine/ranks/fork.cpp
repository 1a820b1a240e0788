// SPDX-License-Identifier: Apache-2.0
#include "ranks/fork.hpp"

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

sigset_t awaited() {
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGCHLD}) {
        sigaddset(&set, signal);
    }
    return set;
}

class Parent {
 public:
    Parent(std::vector<pid_t> workers, NodeHead* head)
        : workers_(std::move(workers)), codes_(workers_.size(), -1), head_(head) {}

    [[noreturn]] void wait_and_exit() {
        const sigset_t set = awaited();
        while (collect()) {
            siginfo_t info{};
            const int signal = sigwaitinfo(&set, &info);
            // A signal typed at the terminal (SI_KERNEL) has reached the whole process group already.
            if (signal > 0 && signal != SIGCHLD && info.si_code != SI_KERNEL) {
                pass_on(signal);
            } else if (signal > 0 && signal != SIGCHLD) {
                passed_ = signal;
            }
        }
        std::fflush(nullptr);
        _exit(worst_status(codes_));
    }

 private:
    void pass_on(int signal) {
        passed_ = signal;
        for (std::size_t local = 0; local < workers_.size(); ++local) {
            if (codes_[local] < 0) {
                kill(workers_[local], signal);
            }
        }
    }

    // Takes the status of all who have ended; true while some run.
    bool collect() {
        for (;;) {
            int status = 0;
            const pid_t worker = waitpid(-1, &status, WNOHANG);
            if (worker <= 0) {
                return worker == 0 || errno == EINTR;
            }
            const auto found = std::find(workers_.begin(), workers_.end(), worker);
            if (found != workers_.end()) {
                ended(static_cast<std::size_t>(found - workers_.begin()), status);
            }
        }
    }

    void ended(std::size_t local, int status) {
        // The others would find out by themselves within a tenth of a second, but not when the worker died so early
        // that it had not yet joined.
        if (head_->peers()[local].state.load() != Peer::left) {
            head_->peers()[local].process.store(static_cast<int>(local));
            head_->lose(static_cast<int>(local));
        }
        if (WIFEXITED(status)) {
            codes_[local] = WEXITSTATUS(status);
            return;
        }
        const int signal = WTERMSIG(status);
        codes_[local] = signal == passed_ ? 5 : 1;
        // The root speaks for the team; when it is the one that died, nobody else would.
        if (local == 0 && signal != passed_) {
            std::fprintf(stderr,
                         "sonde-engine: process 0 was killed by signal %d (%s); finished phases are kept, and `sonde "
                         "clean` removes what it left on the target\n",
                         signal, strsignal(signal));
        }
    }

    std::vector<pid_t> workers_;
    std::vector<int> codes_;
    NodeHead* head_;
    int passed_ = 0;
};

std::unique_ptr<Team> become_worker(Arena arena, NodeHead* head, int local, int processes, pid_t parent) {
    // When the parent is killed, the workers must not go on alone: this is a request to end in good order.
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) {
        _exit(5);
    }
    Place place;
    place.process = place.local = local;
    place.processes = place.locals = processes;
    place.node_of.assign(static_cast<std::size_t>(processes), 0);
    place.host = host_name();
    return std::make_unique<NodeTeam>(std::move(arena), head, std::move(place), "forked");
}

}  // namespace

ProcessRoom process_room() {
    ProcessRoom room;
    std::uint64_t most = 0;
    if (std::ifstream("/proc/sys/kernel/pid_max") >> most) {
        std::string average, running;
        std::ifstream load("/proc/loadavg");  // "0.1 0.2 0.3 2/345 6789": 345 threads
        load >> average >> average >> average >> running;
        const std::size_t slash = running.find('/');
        const std::uint64_t there =
            slash == std::string::npos ? 0 : std::strtoull(running.c_str() + slash + 1, nullptr, 10);
        room.numbers = most > there ? most - there : 0;
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

std::string why_too_many(int processes, const ProcessRoom& room) {
    // Stack, page tables and private pages of one that does nothing yet.
    constexpr std::uint64_t least_memory = 256U << 10U;
    const auto asked = static_cast<std::uint64_t>(processes);
    const std::string begin = std::to_string(processes) + " processes are more than this node can hold: ";
    if (room.numbers > 0 && asked > room.numbers) {
        return begin + std::to_string(room.numbers) +
               " process numbers are free (kernel.pid_max); ask for fewer, or for threads (tasks.threads)";
    }
    if (room.memory > 0 && asked > room.memory / least_memory) {
        return begin + "each takes " + std::to_string(least_memory >> 10U) + " KiB at least, and " +
               std::to_string(room.memory >> 20U) + " MiB are available; ask for fewer, or for threads (tasks.threads)";
    }
    return {};
}

int worst_status(std::span<const int> codes) {
    constexpr std::array<int, 6> order{2, 3, 1, 4, 5, 0};
    auto worst = order.end() - 1;
    for (const int code : codes) {
        const auto rank = std::find(order.begin(), order.end(), code);
        worst = std::min(worst, rank != order.end() ? rank : order.begin() + 1);
    }
    return *worst;
}

std::unique_ptr<Team> fork_team(int processes) {
    if (const std::string why = why_too_many(processes, process_room()); !why.empty()) {
        throw TeamError(why);
    }
    Arena arena = Arena::create();
    NodeHead* head = NodeHead::make(arena.take(NodeHead::bytes(processes)), processes);
    // Blocked before the first fork, so that no signal falls between the fork and the wait.
    const sigset_t set = awaited();
    sigset_t before;
    sigprocmask(SIG_BLOCK, &set, &before);
    std::fflush(nullptr);
    const pid_t parent = getpid();
    std::vector<pid_t> workers;
    for (int local = 0; local < processes; ++local) {
        const pid_t worker = fork();
        if (worker == 0) {
            sigprocmask(SIG_SETMASK, &before, nullptr);
            return become_worker(std::move(arena), head, local, processes, parent);
        }
        if (worker < 0) {
            const std::string why = std::strerror(errno);
            for (const pid_t started : workers) {
                kill(started, SIGKILL);
                waitpid(started, nullptr, 0);
            }
            sigprocmask(SIG_SETMASK, &before, nullptr);
            throw TeamError("cannot start process " + std::to_string(local) + " of " + std::to_string(processes) +
                            ": " + why + "; check `ulimit -u` or ask for fewer processes");
        }
        workers.push_back(worker);
    }
    Parent(std::move(workers), head).wait_and_exit();
}

}  // namespace sonde::ranks
