// SPDX-License-Identifier: Apache-2.0
#include "ranks/rendezvous.hpp"

#include "ranks/local_socket.hpp"
#include "ranks/node_team.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <thread>

namespace sonde::ranks {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// What a process says when it connects.
struct Hello {
    std::uint32_t version = 1;
    std::int32_t local = 0, locals = 0;
};

struct Address {
    sockaddr_un name{};
    socklen_t length = 0;
};

// An abstract address: bound to the life of the socket, seen only in this network namespace.
Address address(const std::string& meeting) {
    const std::string text = "sonde/" + std::to_string(getuid()) + "/" + meeting;
    Address result;
    result.name.sun_family = AF_UNIX;
    const std::size_t room = sizeof result.name.sun_path - 1;
    std::string fitting = text;
    if (fitting.size() > room) {
        fitting.resize(room - 17);
        fitting += "#" + std::to_string(std::hash<std::string>{}(text) % 10'000'000'000ULL);
    }
    std::memcpy(result.name.sun_path + 1, fitting.data(), fitting.size());
    result.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + fitting.size());
    return result;
}

Socket new_socket() {
    Socket made(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    if (*made < 0) {
        throw TeamError(std::string("cannot make a socket to meet the other processes of this node: ") +
                        std::strerror(errno));
    }
    return made;
}

// Other users can take the same name: only our own processes count.
bool ours(int connection) {
    ucred peer{};
    socklen_t size = sizeof peer;
    return getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == getuid();
}

bool readable(int descriptor, Clock::time_point until) {
    const auto left = std::chrono::duration_cast<milliseconds>(until - Clock::now()).count();
    pollfd wait{descriptor, POLLIN, 0};
    return poll(&wait, 1, static_cast<int>(std::max<std::int64_t>(left, 0))) > 0;
}

[[noreturn]] void too_late(const Meeting& meeting, const std::string& missing) {
    throw TeamError("the " + std::to_string(meeting.locals) +
                    " processes of this node did not find each other within " +
                    std::to_string(meeting.patience.count() / 1000) + " s (" + missing +
                    "): check that the launcher started all of them in the same container, or use --mpi");
}

Socket bound(const Meeting& meeting, Clock::time_point until) {
    Socket door = new_socket();
    const Address where = address(meeting.name);
    // Taken: by an earlier run of the same job that is just ending. Wait for it.
    while (bind(*door, reinterpret_cast<const sockaddr*>(&where.name), where.length) != 0) {
        if (errno != EADDRINUSE || Clock::now() >= until) {
            too_late(meeting, std::string("the meeting point cannot be opened: ") + std::strerror(errno));
        }
        std::this_thread::sleep_for(milliseconds(10));
    }
    if (listen(*door, meeting.locals) != 0) {
        too_late(meeting, std::string("the meeting point cannot be opened: ") + std::strerror(errno));
    }
    return door;
}

Joined host(const Meeting& meeting, Clock::time_point until) {
    Socket door = bound(meeting, until);
    Arena arena = Arena::create();
    NodeHead* head = NodeHead::make(arena.take(NodeHead::bytes(meeting.locals)), meeting.locals);
    std::vector<bool> came(static_cast<std::size_t>(meeting.locals), false);
    came[0] = true;
    for (auto missing = std::find(came.begin(), came.end(), false); missing != came.end();
         missing = std::find(came.begin(), came.end(), false)) {
        if (!readable(*door, until)) {
            too_late(meeting, "local process " + std::to_string(missing - came.begin()) + " is missing");
        }
        const Socket guest(accept4(*door, nullptr, nullptr, SOCK_CLOEXEC));
        Hello hello;
        if (*guest < 0 || !ours(*guest) || !readable(*guest, until) ||
            recv(*guest, &hello, sizeof hello, 0) != sizeof hello) {
            continue;
        }
        const auto who = static_cast<std::size_t>(std::max(hello.local, 0));
        if (hello.version == Hello{}.version && hello.locals == meeting.locals && who < came.size() && !came[who]) {
            came[who] = send_descriptor(*guest, "S", 1, arena.descriptor());
        }
    }
    return {std::move(arena), head};
}

Joined visit(const Meeting& meeting, Clock::time_point until) {
    const Address where = address(meeting.name);
    auto pause = milliseconds(1);
    while (Clock::now() < until) {
        const Socket line = new_socket();
        if (connect(*line, reinterpret_cast<const sockaddr*>(&where.name), where.length) == 0 && ours(*line)) {
            const Hello hello{Hello{}.version, meeting.local, meeting.locals};
            if (send(*line, &hello, sizeof hello, MSG_NOSIGNAL) == sizeof hello && readable(*line, until)) {
                char byte = 0;
                int descriptor = -1;
                if (receive_descriptor(*line, &byte, 1, descriptor) && descriptor >= 0) {
                    Arena arena = Arena::adopt(descriptor);
                    auto* head = NodeHead::at(arena.take(NodeHead::bytes(meeting.locals)));
                    return {std::move(arena), head};
                }
            }
        }
        std::this_thread::sleep_for(pause);
        pause = std::min(pause * 2, milliseconds(20));
    }
    too_late(meeting, "local process 0 did not answer");
}

}  // namespace

Joined rendezvous(const Meeting& meeting) {
    const auto until = Clock::now() + meeting.patience;
    return meeting.local == 0 ? host(meeting, until) : visit(meeting, until);
}

}  // namespace sonde::ranks
