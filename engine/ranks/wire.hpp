// SPDX-License-Identifier: Apache-2.0
// News between nodes while the tasks are busy: stop flags, deaths, progress. On runs of several nodes, each leader has
// a small process of its own (not a thread: a second thread makes every system call of a single-threaded task slower)
// that reports to the one of node 0 by UDP five times a second and hears what the others say. When no datagram gets
// through, nothing breaks: the root sees no remote progress, and stops reach the others at the next barrier.
#pragma once

#include "ranks/local_socket.hpp"
#include "ranks/wire_message.hpp"

#include <sys/types.h>
#include <memory>
#include <string>

namespace sonde::ranks {

class Wire {
 public:
    /// Forks the process; before MPI is started, since MPI libraries dislike it afterwards. Null when it cannot be
    /// made.
    static std::unique_ptr<Wire> start();
    /// Ends the process without a word to the others.
    ~Wire();
    Wire(const Wire&) = delete;
    Wire& operator=(const Wire&) = delete;

    /// Where this process can be reached.
    const Addresses& addresses() const { return addresses_; }
    struct Task {
        std::uint64_t token = 0;
        int node = 0, nodes = 1;
        int process = 0;  ///< of the leader: who is lost when it dies
        std::uint64_t head_bytes = 0;
        std::int64_t patience_ns = 0;  ///< a node that is silent for longer is given up
        Addresses hub;                 ///< those of node 0
    };
    /// From now on it speaks for the node whose arena this is. Should the leader end without dismiss(), the others hear
    /// of its death.
    void assign(const Task& task, int arena);
    /// The run ends in good order. Waits for the process to end.
    void dismiss();

 private:
    Wire(pid_t process, Socket line) : process_(process), line_(std::move(line)) {}
    pid_t process_;
    Socket line_;
    Addresses addresses_;
};

}  // namespace sonde::ranks
