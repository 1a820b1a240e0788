// SPDX-License-Identifier: Apache-2.0
#include "ranks/rendezvous.hpp"
#include "ranks/team_error.hpp"

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
#include <optional>
#include <thread>

namespace sonde::ranks {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// Message of a process that connects.
struct JoinRequest {
    std::uint32_t version = 1;
    std::int32_t local_index = 0, local_count = 0;
};

struct SocketAddress {
    sockaddr_un name{};
    socklen_t length = 0;
};

// Any user may bind any abstract address. The first of these that is free is used, so that one who guesses the name of
// the job and binds it first does not stop the run.
constexpr int max_addresses = 16;

// An abstract address: it exists as long as the socket, and only in this network namespace.
SocketAddress make_address(const std::string& request, int number) {
    const std::string text = "sonde/" + std::to_string(getuid()) + "/" + request +
                             (number > 0 ? "/" + std::to_string(number) : std::string());
    SocketAddress result;
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

Socket new_socket(int flags) {
    Socket new_socket_handle(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0));
    if (*new_socket_handle < 0) {
        throw TeamError(std::string("cannot make a socket to meet the other processes of this node: ") +
                        std::strerror(errno));
    }
    return new_socket_handle;
}

// Other users can bind the same name, so only processes of this user are accepted.
bool is_same_user(int connection) {
    ucred peer{};
    socklen_t size = sizeof peer;
    return getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == getuid();
}

bool wait_until_readable(int descriptor, Clock::time_point deadline) {
    const auto remaining_ms = std::chrono::duration_cast<milliseconds>(deadline - Clock::now()).count();
    pollfd wait{descriptor, POLLIN, 0};
    return poll(&wait, 1, static_cast<int>(std::max<std::int64_t>(remaining_ms, 0))) > 0;
}

[[noreturn]] void fail_rendezvous(const RendezvousRequest& request, const std::string& missing) {
    throw TeamError("the " + std::to_string(request.local_count) +
                    " processes of this node did not find each other within " +
                    std::to_string(request.timeout.count() / 1000) + " s (" + missing +
                    "): check that the launcher started all of them in the same container, or use --mpi");
}

bool bind_to_free_address(int listener, const std::string& name) {
    for (int number = 0; number < max_addresses; ++number) {
        const SocketAddress address = make_address(name, number);
        if (bind(listener, reinterpret_cast<const sockaddr*>(&address.name), address.length) == 0) {
            return true;
        }
        if (errno != EADDRINUSE) {
            return false;
        }
    }
    return false;
}

Socket bind_socket(const RendezvousRequest& request, Clock::time_point deadline) {
    Socket listener = new_socket(0);
    // The addresses may belong to earlier runs of the same job that are about to end: retry.
    while (!bind_to_free_address(*listener, request.name)) {
        if (errno != EADDRINUSE || Clock::now() >= deadline) {
            fail_rendezvous(request, std::string("the meeting point cannot be opened: ") + std::strerror(errno));
        }
        std::this_thread::sleep_for(milliseconds(10));
    }
    if (listen(*listener, request.local_count) != 0) {
        fail_rendezvous(request, std::string("the meeting point cannot be opened: ") + std::strerror(errno));
    }
    return listener;
}

RendezvousResult host_rendezvous(const RendezvousRequest& request, Clock::time_point deadline) {
    Socket listener = bind_socket(request, deadline);
    Arena arena = Arena::create();
    NodeSharedState* head = NodeSharedState::construct_in(
        arena.allocate(NodeSharedState::required_bytes(request.local_count)), request.local_count);
    std::vector<bool> has_joined(static_cast<std::size_t>(request.local_count), false);
    has_joined[0] = true;
    for (auto missing = std::find(has_joined.begin(), has_joined.end(), false); missing != has_joined.end();
         missing = std::find(has_joined.begin(), has_joined.end(), false)) {
        if (!wait_until_readable(*listener, deadline)) {
            fail_rendezvous(request, "local process " + std::to_string(missing - has_joined.begin()) + " is missing");
        }
        const Socket connection(accept4(*listener, nullptr, nullptr, SOCK_CLOEXEC));
        JoinRequest hello;
        if (*connection < 0 || !is_same_user(*connection) || !wait_until_readable(*connection, deadline) ||
            recv(*connection, &hello, sizeof hello, 0) != sizeof hello) {
            continue;
        }
        const auto sender = static_cast<std::size_t>(std::max(hello.local_index, 0));
        if (hello.version == JoinRequest{}.version && hello.local_count == request.local_count &&
            sender < has_joined.size() && !has_joined[sender]) {
            has_joined[sender] = send_descriptor(*connection, "S", 1, arena.descriptor());
        }
    }
    return {std::move(arena), head};
}

std::optional<RendezvousResult> try_join(const RendezvousRequest& request, int number, Clock::time_point deadline) {
    const SocketAddress address = make_address(request.name, number);
    // Another user who listens at this address and never accepts must not stop connect().
    const Socket connection = new_socket(SOCK_NONBLOCK);
    if (connect(*connection, reinterpret_cast<const sockaddr*>(&address.name), address.length) != 0 ||
        !is_same_user(*connection)) {
        return std::nullopt;
    }
    const JoinRequest hello{JoinRequest{}.version, request.local_index, request.local_count};
    char byte = 0;
    int descriptor = -1;
    if (send(*connection, &hello, sizeof hello, MSG_NOSIGNAL) != sizeof hello ||
        !wait_until_readable(*connection, deadline) || !receive_descriptor(*connection, &byte, 1, descriptor) ||
        descriptor < 0) {
        return std::nullopt;
    }
    Arena arena = Arena::adopt(descriptor);
    auto* head = NodeSharedState::attach(arena.allocate(NodeSharedState::required_bytes(request.local_count)));
    return RendezvousResult{std::move(arena), head};
}

RendezvousResult join_rendezvous(const RendezvousRequest& request, Clock::time_point deadline) {
    auto pause = milliseconds(1);
    while (Clock::now() < deadline) {
        for (int number = 0; number < max_addresses; ++number) {
            if (auto joined = try_join(request, number, deadline)) {
                return std::move(*joined);
            }
        }
        std::this_thread::sleep_for(pause);
        pause = std::min(pause * 2, milliseconds(20));
    }
    fail_rendezvous(request, "local process 0 did not answer");
}

}  // namespace

RendezvousResult rendezvous(const RendezvousRequest& request) {
    const auto deadline = Clock::now() + request.timeout;
    return request.local_index == 0 ? host_rendezvous(request, deadline) : join_rendezvous(request, deadline);
}

}  // namespace sonde::ranks
