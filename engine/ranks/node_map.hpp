// SPDX-License-Identifier: Apache-2.0
// Groups the processes of a run by node, from what each process reports about itself.
#pragma once

#include "ranks/team.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace sonde::ranks {

/// The report of a process about itself. Plain data that is sent between machines of the same architecture.
struct ProcessIdentity {
    /// Equal for processes that can share memory and sockets: made of the boot id, the host name and the network
    /// namespace, because containers may agree in any one or two of them.
    std::uint64_t machine = 0;
    std::uint64_t token = 0;         ///< random
    std::array<char, 64> host{};     ///< zero-terminated
    std::array<char, 32> version{};  ///< of the engine; zero-terminated
    /// The node in the host list of the job; zero-terminated, empty when it is too long.
    std::array<char, 64> listed_name{};

    /// `listed_name` empty: the host name.
    static ProcessIdentity of_this_process(const std::string& listed_name = "");
};

struct NodeMap {
    ProcessLocation location;
    std::vector<int> leaders;             ///< node -> its lowest process
    std::vector<std::string> node_names;  ///< node -> its name in the host list of the job
    std::uint64_t token = 0;              ///< of this node's leader: the same for all of this node
};

/// One sentence that names two different engine versions in the run; empty when all are equal. Different versions use
/// different messages and layouts.
std::string explain_version_mismatch(std::span<const ProcessIdentity> identities);

/// `identities[p]` is the identity of process p.
NodeMap map_nodes(std::span<const ProcessIdentity> identities, int process);

}  // namespace sonde::ranks
