// SPDX-License-Identifier: Apache-2.0
#include "ranks/node_address.hpp"

#include "ranks/local_socket.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>

namespace sonde::ranks {
namespace {

constexpr std::array<std::uint8_t, 12> mapped_ipv4{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

bool is_mapped_ipv4(const std::array<std::uint8_t, 16>& address) {
    return std::equal(mapped_ipv4.begin(), mapped_ipv4.end(), address.begin());
}

in6_addr to_ipv6(const std::array<std::uint8_t, 16>& address) {
    in6_addr result{};
    std::memcpy(&result, address.data(), address.size());
    return result;
}

// The kernel chooses the route when a UDP socket is connected; no datagram is sent.
std::optional<NodeAddress> find_source_address(const addrinfo& destination) {
    const Socket socket_of_route(socket(destination.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_storage source{};
    socklen_t size = sizeof source;
    if (*socket_of_route < 0 || connect(*socket_of_route, destination.ai_addr, destination.ai_addrlen) != 0 ||
        getsockname(*socket_of_route, reinterpret_cast<sockaddr*>(&source), &size) != 0) {
        return std::nullopt;
    }
    NodeAddress result = NodeAddress::from_socket(source);
    result.port = 0;
    const in6_addr address = to_ipv6(result.address);
    // A link-local address needs the name of an interface of each node.
    return IN6_IS_ADDR_LINKLOCAL(&address) == 0 && IN6_IS_ADDR_UNSPECIFIED(&address) == 0
               ? std::optional<NodeAddress>(result)
               : std::nullopt;
}

std::optional<NodeAddress> find_address_towards(const std::string& name) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_DGRAM;
    addrinfo* first = nullptr;
    constexpr const char* any_port = "9";  // connect() needs one
    if (name.empty() || getaddrinfo(name.c_str(), any_port, &hints, &first) != 0) {
        return std::nullopt;
    }
    const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> list(first, &freeaddrinfo);
    for (const addrinfo* entry = first; entry != nullptr; entry = entry->ai_next) {
        const auto source = find_source_address(*entry);
        if (source && !source->is_loopback()) {
            return source;
        }
    }
    return std::nullopt;
}

}  // namespace

bool NodeAddress::is_loopback() const {
    const in6_addr ipv6 = to_ipv6(address);
    return is_mapped_ipv4(address) ? address[12] == 127 : IN6_IS_ADDR_LOOPBACK(&ipv6) != 0;
}

NodeAddress NodeAddress::loopback() {
    return {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1}, 0};
}

NodeAddress NodeAddress::from_socket(const sockaddr_storage& name) {
    NodeAddress result;
    if (name.ss_family == AF_INET) {
        const auto& ipv4 = reinterpret_cast<const sockaddr_in&>(name);
        std::copy(mapped_ipv4.begin(), mapped_ipv4.end(), result.address.begin());
        std::memcpy(result.address.data() + mapped_ipv4.size(), &ipv4.sin_addr, sizeof ipv4.sin_addr);
        result.port = ipv4.sin_port;
    } else if (name.ss_family == AF_INET6) {
        const auto& ipv6 = reinterpret_cast<const sockaddr_in6&>(name);
        std::memcpy(result.address.data(), &ipv6.sin6_addr, result.address.size());
        result.port = ipv6.sin6_port;
    }
    return result;
}

socklen_t NodeAddress::to_socket(sockaddr_storage& name) const {
    name = {};
    if (is_mapped_ipv4(address)) {
        auto& ipv4 = reinterpret_cast<sockaddr_in&>(name);
        ipv4.sin_family = AF_INET;
        ipv4.sin_port = port;
        std::memcpy(&ipv4.sin_addr, address.data() + mapped_ipv4.size(), sizeof ipv4.sin_addr);
        return sizeof ipv4;
    }
    auto& ipv6 = reinterpret_cast<sockaddr_in6&>(name);
    ipv6.sin6_family = AF_INET6;
    ipv6.sin6_port = port;
    std::memcpy(&ipv6.sin6_addr, address.data(), address.size());
    return sizeof ipv6;
}

NodeAddress choose_hub_address(std::span<const std::string> node_names) {
    constexpr std::size_t enough = 2;  // a name server that does not answer costs seconds for each name
    const std::size_t others = std::min(node_names.size(), enough + 1);
    for (std::size_t node = 1; node < others; ++node) {
        if (const auto address = find_address_towards(node_names[node])) {
            return *address;
        }
    }
    const auto own_address = node_names.empty() ? std::nullopt : find_address_towards(node_names[0]);
    return own_address.value_or(NodeAddress::loopback());
}

}  // namespace sonde::ranks
