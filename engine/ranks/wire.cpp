// SPDX-License-Identifier: Apache-2.0
#include "ranks/wire.hpp"

#include "ranks/wire_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

namespace sonde::ranks {
namespace {

// No descriptor of the leader may stay open: its launcher waits until pipes and sockets are closed.
void close_all_but(int descriptor) {
    const int safe = fcntl(descriptor, F_DUPFD_CLOEXEC, 64);
    const int null = open("/dev/null", O_RDWR);
    for (const int standard : {0, 1, 2}) {
        if (null < 0) {
            close(standard);
        } else {
            dup2(null, standard);
        }
    }
    dup3(safe, 3, O_CLOEXEC);
#if defined(SYS_close_range)
    if (syscall(SYS_close_range, 4U, ~0U, 0U) == 0) {
        return;
    }
#endif
    const long last = std::min(sysconf(_SC_OPEN_MAX), 65536L);
    for (int other = 4; other < last; ++other) {
        close(other);
    }
}

}  // namespace

std::unique_ptr<WireHandle> WireHandle::start() {
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
        return nullptr;
    }
    const pid_t leader = getpid();
    const pid_t process = fork();
    if (process == 0) {
        // Signals are for the tasks; this process forwards their state and ends with them.
        for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGALRM, SIGPIPE, SIGUSR1, SIGUSR2}) {
            std::signal(signal, SIG_IGN);
        }
        prctl(PR_SET_NAME, "sonde-wire");
        // Launchers kill the process group of a failed node. A separate session lets this process report the failure
        // first.
        setsid();
        close_all_but(ends[1]);
        run_wire_process(Socket(3), leader);
    }
    close(ends[1]);
    Socket line(ends[0]);
    if (process < 0) {
        return nullptr;
    }
    return std::unique_ptr<WireHandle>(new WireHandle(process, std::move(line)));
}

WireHandle::~WireHandle() {
    // Closing the connection without a message signals the death of the leader: the wire process reports it and ends.
    line_.close();
}

NodeAddress WireHandle::open_socket(bool is_hub, const NodeAddress& hub) {
    const WireOpening opening{is_hub ? 1U : 0U, hub};
    NodeAddress own_address;
    int no_descriptor = -1;
    pollfd wait{*line_, POLLIN, 0};
    const bool is_answered = send_descriptor(*line_, &opening, sizeof opening, -1) && poll(&wait, 1, 2000) == 1 &&
                             receive_descriptor(*line_, &own_address, sizeof own_address, no_descriptor);
    return is_answered ? own_address : NodeAddress{};
}

void WireHandle::assign(const WireProcessSettings& assignment, int arena) {
    send_descriptor(*line_, &assignment, sizeof assignment, arena);
}

void WireHandle::finish() {
    const char bye = 'b';
    send_descriptor(*line_, &bye, sizeof bye, -1);
    int status = 0;
    while (waitpid(process_, &status, 0) < 0 && errno == EINTR) {
    }
}

}  // namespace sonde::ranks
