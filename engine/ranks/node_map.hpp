// SPDX-License-Identifier: Apache-2.0
// Which processes are on one node, found out by each telling who it is and where.
#pragma once

#include "ranks/team.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace sonde::ranks {

/// What a process says of itself. Plain data: travels between machines of one kind.
struct Identity {
    /// Equal for processes that can share memory and sockets: made of the boot id, the host name and the network
    /// namespace, because containers may agree in any one or two of them.
    std::uint64_t machine = 0;
    std::uint64_t token = 0;         ///< random
    std::array<char, 64> host{};     ///< zero-terminated
    std::array<char, 32> version{};  ///< of the engine; zero-terminated

    static Identity mine();
};

struct NodeMap {
    Place place;
    std::vector<int> leaders;  ///< node -> its lowest process
    std::uint64_t token = 0;   ///< of this node's leader: the same for all of this node
};

/// Engines of two versions count differently and speak differently: one sentence that names both, empty when all are
/// the same.
std::string mixed_engines(std::span<const Identity> all);

/// `all[p]` is what process p said.
NodeMap map_nodes(std::span<const Identity> all, int process);

}  // namespace sonde::ranks
