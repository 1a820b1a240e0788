// SPDX-License-Identifier: Apache-2.0
// The network address on which the wire process of node 0 receives messages of other nodes: that of the interface
// towards the nodes of the job, never all interfaces.
#pragma once

#include <sys/socket.h>
#include <array>
#include <cstdint>
#include <span>
#include <string>

namespace sonde::ranks {

/// An IPv6 address, or a mapped IPv4 address, with a UDP port. Plain data between machines of the same architecture.
struct NodeAddress {
    std::array<std::uint8_t, 16> address{};
    std::uint16_t port = 0;  ///< network byte order; 0 = none

    bool is_loopback() const;
    bool operator==(const NodeAddress&) const = default;
    static NodeAddress loopback();
    /// Without an address when the family is another one.
    static NodeAddress from_socket(const sockaddr_storage& name);
    /// Returns the length of the name.
    socklen_t to_socket(sockaddr_storage& name) const;
};

/// The address of this node on the route to the other nodes of the job. `node_names[n]` is the name of node n in the
/// job's host list; this node is node 0. The first of these that is not a loopback address: the address from which the
/// kernel sends to the other nodes (two are tried), and the own name's address. Otherwise loopback, for nodes that are
/// containers on one machine.
NodeAddress choose_hub_address(std::span<const std::string> node_names);

}  // namespace sonde::ranks
