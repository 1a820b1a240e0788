// SPDX-License-Identifier: Apache-2.0
#include "ranks/wire_socket.hpp"

#include <netinet/in.h>
#include <cstring>
#include <utility>

namespace sonde::ranks {
namespace {

int open_udp_socket(const sockaddr_storage& name) {
    const int descriptor = socket(name.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const int on = 1;
    setsockopt(descriptor, SOL_SOCKET, SO_RXQ_OVFL, &on, sizeof on);
    return descriptor;
}

}  // namespace

void WireSocket::bind_to(const NodeAddress& address) {
    sockaddr_storage name{};
    const socklen_t size = address.to_socket(name);
    Socket opened(open_udp_socket(name));
    if (*opened >= 0 && bind(*opened, reinterpret_cast<const sockaddr*>(&name), size) == 0) {
        socket_.reset(opened.release());
    }
}

void WireSocket::connect_to(const NodeAddress& hub) {
    sockaddr_storage name{};
    const socklen_t size = hub.to_socket(name);
    Socket opened(open_udp_socket(name));
    if (*opened >= 0 && connect(*opened, reinterpret_cast<const sockaddr*>(&name), size) == 0) {
        socket_.reset(opened.release());
    }
}

NodeAddress WireSocket::own_address() const {
    sockaddr_storage name{};
    socklen_t size = sizeof name;
    return *socket_ >= 0 && getsockname(*socket_, reinterpret_cast<sockaddr*>(&name), &size) == 0
               ? NodeAddress::from_socket(name)
               : NodeAddress{};
}

void WireSocket::send(const void* data, std::size_t bytes) const {
    ::send(*socket_, data, bytes, MSG_NOSIGNAL);
}

void WireSocket::send(const void* data, std::size_t bytes, const sockaddr_storage& to) const {
    const socklen_t size = to.ss_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    sendto(*socket_, data, bytes, MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&to), size);
}

ssize_t WireSocket::receive(void* data, std::size_t bytes, sockaddr_storage& from) {
    iovec part{data, bytes};
    alignas(cmsghdr) char space[CMSG_SPACE(sizeof(std::uint32_t))] = {};
    msghdr message{};
    message.msg_name = &from;
    message.msg_namelen = sizeof from;
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = space;
    message.msg_controllen = sizeof space;
    const ssize_t length = recvmsg(*socket_, &message, MSG_TRUNC);
    const cmsghdr* control = length >= 0 ? CMSG_FIRSTHDR(&message) : nullptr;
    if (control != nullptr && control->cmsg_level == SOL_SOCKET && control->cmsg_type == SO_RXQ_OVFL) {
        std::memcpy(&dropped_, CMSG_DATA(control), sizeof dropped_);
    }
    return length;
}

bool WireSocket::take_overflow() {
    return std::exchange(dropped_before_, dropped_) != dropped_;
}

}  // namespace sonde::ranks
