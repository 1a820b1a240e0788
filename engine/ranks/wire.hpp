// SPDX-License-Identifier: Apache-2.0
// Messages between nodes during a phase: stop flags, deaths, progress. In runs on several nodes, each leader has a
// separate wire process, which sends reports to the wire process of node 0 by UDP five times a second and receives the
// combined state. It is a process because a second thread slows down every system call of a single-threaded task.
// Without UDP the run still works: the root sees no remote progress, and stops reach other nodes at the next barrier.
// The socket is opened only in runs on several nodes, on one address, and datagrams carry a keyed hash.
#pragma once

#include "ranks/local_socket.hpp"
#include "ranks/node_address.hpp"
#include "ranks/wire_message.hpp"

#include <sys/types.h>
#include <memory>
#include <string>

namespace sonde::ranks {

class WireHandle {
 public:
    /// Forks the wire process, which opens no socket yet. Must be called before MPI starts, because MPI libraries do
    /// not support fork afterwards. Returns null on failure.
    static std::unique_ptr<WireHandle> start();
    /// Ends the wire process as after the death of the leader.
    ~WireHandle();
    WireHandle(const WireHandle&) = delete;
    WireHandle& operator=(const WireHandle&) = delete;

    /// Opens the socket of the wire process: the hub binds to `hub` and the kernel chooses a port; other nodes connect
    /// to `hub`, unless it has no port. Called once, before assign(). Returns the own address, without a port on
    /// failure.
    NodeAddress open_socket(bool is_hub, const NodeAddress& hub);
    /// Starts the reports for the node of this arena. If the leader ends without finish(), the other nodes learn of its
    /// death.
    void assign(const WireProcessSettings& assignment, int arena);
    /// Ends the wire process in good order and waits for it.
    void finish();

 private:
    WireHandle(pid_t process, Socket line) : process_(process), line_(std::move(line)) {}
    pid_t process_;
    Socket line_;
};

}  // namespace sonde::ranks
