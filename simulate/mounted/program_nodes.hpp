// SPDX-License-Identifier: Apache-2.0
// Assigns programs to the nodes of the machine: processes in turn, in the order of their first call. All threads of a
// process are on one node.
#pragma once

#include "mounted/real_time_machine.hpp"

#include <mutex>
#include <unordered_map>
#include <vector>

#include <sys/types.h>

namespace sonde::simulate {

class ProgramNodes {
 public:
    ProgramNodes(RealTimeMachine& machine, std::uint32_t nodes);

    /// Index of the client of a thread.
    std::uint32_t get_client(pid_t thread);
    /// The stream for metadata calls of a thread.
    StreamId get_metadata_stream(pid_t thread);

 private:
    static constexpr std::size_t streams_per_node = 64;  ///< threads with the same stream take turns

    std::uint32_t nodes_;
    std::vector<StreamId> streams_;  ///< of node n: from index n * streams_per_node on
    std::mutex mutex_;
    std::unordered_map<pid_t, std::uint32_t> clients_;  ///< by thread and by process
    std::uint32_t assigned_processes_ = 0;
};

}  // namespace sonde::simulate
