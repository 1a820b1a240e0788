// SPDX-License-Identifier: Apache-2.0
// The UDP socket of a wire process: bound to one address at the hub, connected to the hub elsewhere, so that the kernel
// delivers datagrams of the hub only.
#pragma once

#include "ranks/local_socket.hpp"
#include "ranks/node_address.hpp"

#include <cstdint>

namespace sonde::ranks {

class WireSocket {
 public:
    /// Binds to `address`; the kernel chooses the port.
    void bind_to(const NodeAddress& address);
    /// Connects to the hub; the kernel chooses the own address and port.
    void connect_to(const NodeAddress& hub);
    /// -1 when it could not be opened. The run continues without messages.
    int descriptor() const { return *socket_; }
    /// The own address with its port; without a port when there is no socket.
    NodeAddress own_address() const;

    /// Sends to the hub (connected socket).
    void send(const void* data, std::size_t bytes) const;
    void send(const void* data, std::size_t bytes, const sockaddr_storage& to) const;
    /// Receives one datagram of at most `bytes`. Returns its full length, which may be larger, or -1 when there is
    /// none.
    ssize_t receive(void* data, std::size_t bytes, sockaddr_storage& from);
    /// Whether the kernel has dropped datagrams because they arrived too fast, since the last call.
    bool take_overflow();

 private:
    Socket socket_{-1};
    std::uint32_t dropped_ = 0, dropped_before_ = 0;
};

}  // namespace sonde::ranks
