// SPDX-License-Identifier: Apache-2.0
// Which node of the machine a program is on. The kernel says which thread calls; processes are dealt to the nodes in
// the order of their first call, and all threads of one are on one node.
#pragma once

#include "mounted/pace.hpp"

#include <mutex>
#include <unordered_map>
#include <vector>

#include <sys/types.h>

namespace sonde::simulate {

class Callers {
 public:
    Callers(Pace& pace, std::uint32_t nodes);

    /// Index of the client.
    std::uint32_t client_of(pid_t thread);
    /// For calls that belong to no open file: those of one thread are made one after the other.
    StreamId names_of(pid_t thread);

 private:
    static constexpr std::size_t streams_each = 64;  ///< threads that share one by chance take turns in the call itself

    std::uint32_t nodes_;
    std::vector<StreamId> streams_;  ///< of node n from n * streams_each on
    std::mutex mutex_;
    std::unordered_map<pid_t, std::uint32_t> clients_;  ///< by thread and by process
    std::uint32_t dealt_ = 0;
};

}  // namespace sonde::simulate
