// SPDX-License-Identifier: Apache-2.0
// Messages between nodes: only processes with the key of the run can make one, and a copy is not accepted again.
#include "ranks/arena.hpp"
#include "ranks/node_address.hpp"
#include "ranks/node_team.hpp"
#include "ranks/wire.hpp"
#include "ranks/wire_message.hpp"

#include <doctest/doctest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <thread>

using namespace sonde::ranks;

namespace {

// vectors_sip64 of the reference implementation (github.com/veorq/SipHash, vectors.h), read as little-endian words:
// key 00 01 … 0f, input 00 01 … n-1.
constexpr std::array<std::uint64_t, 64> reference_hashes{
    0x726fdb47dd0e0e31, 0x74f839c593dc67fd, 0x0d6c8009d9a94f5a, 0x85676696d7fb7e2d, 0xcf2794e0277187b7,
    0x18765564cd99a68d, 0xcbc9466e58fee3ce, 0xab0200f58b01d137, 0x93f5f5799a932462, 0x9e0082df0ba9e4b0,
    0x7a5dbbc594ddb9f3, 0xf4b32f46226bada7, 0x751e8fbc860ee5fb, 0x14ea5627c0843d90, 0xf723ca908e7af2ee,
    0xa129ca6149be45e5, 0x3f2acc7f57c29bdb, 0x699ae9f52cbe4794, 0x4bc1b3f0968dd39c, 0xbb6dc91da77961bd,
    0xbed65cf21aa2ee98, 0xd0f2cbb02e3b67c7, 0x93536795e3a33e88, 0xa80c038ccd5ccec8, 0xb8ad50c6f649af94,
    0xbce192de8a85b8ea, 0x17d835b85bbb15f3, 0x2f2e6163076bcfad, 0xde4daaaca71dc9a5, 0xa6a2506687956571,
    0xad87a3535c49ef28, 0x32d892fad841c342, 0x7127512f72f27cce, 0xa7f32346f95978e3, 0x12e0b01abb051238,
    0x15e034d40fa197ae, 0x314dffbe0815a3b4, 0x027990f029623981, 0xcadcd4e59ef40c4d, 0x9abfd8766a33735c,
    0x0e3ea96b5304a7d0, 0xad0c42d6fc585992, 0x187306c89bc215a9, 0xd4a60abcf3792b95, 0xf935451de4f21df2,
    0xa9538f0419755787, 0xdb9acddff56ca510, 0xd06c98cd5c0975eb, 0xe612a3cb9ecba951, 0xc766e62cfcadaf96,
    0xee64435a9752fe72, 0xa192d576b245165a, 0x0a8787bf8ecb74b2, 0x81b3e73d20b49b6f, 0x7fa8220ba3b2ecea,
    0x245731c13ca42499, 0xb78dbfaf3a8d83bd, 0xea1ad565322a1a0b, 0x60e61c23a3795013, 0x6606d7e446282b93,
    0x6ca4ecb15c5f91e1, 0x9f626da15c9625f3, 0xe51b38608ef25f57, 0x958a324ceb064572,
};

constexpr HashKey run_key{0x1122334455667788ULL, 0x99aabbccddeeff00ULL};

/// The wire process of one node, with the shared state of that node.
struct WireNode {
    WireNode(int node, const NodeAddress& hub) : wire(WireHandle::start()) {
        head = NodeSharedState::construct_in(arena.allocate(NodeSharedState::required_bytes(1)), 1);
        address = wire->open_socket(node == 0, hub);
        WireProcessSettings assignment{.node = node,
                                       .nodes = 2,
                                       .process = node,
                                       .head_bytes = NodeSharedState::required_bytes(1),
                                       .patience_ns = 1'000'000'000,
                                       .key = run_key};
        wire->assign(assignment, arena.descriptor());
    }
    ~WireNode() { wire->finish(); }
    Arena arena = Arena::create();
    NodeSharedState* head = nullptr;
    NodeAddress address;
    std::unique_ptr<WireHandle> wire;
};

/// Somebody who sends to the port of the hub.
struct Intruder {
    explicit Intruder(const NodeAddress& hub) { size = hub.to_socket(name); }
    ~Intruder() { close(descriptor); }
    void send(const void* data, std::size_t bytes) const {
        REQUIRE(sendto(descriptor, data, bytes, 0, reinterpret_cast<const sockaddr*>(&name), size) ==
                static_cast<ssize_t>(bytes));
    }
    int descriptor = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    sockaddr_storage name{};
    socklen_t size;
};

bool wait_until(const std::function<bool()>& condition) {
    for (int tries = 0; tries < 1000 && !condition(); ++tries) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return condition();
}

Datagram<NodeReport> make_stop_report(std::uint64_t sequence, const HashKey& key) {
    Datagram<NodeReport> datagram;
    datagram.sequence = sequence;
    datagram.message.node = 1;
    datagram.message.signals.stop = NodeControl::quit_error;
    datagram.message.signals.leader_gone = NodeSignals::leader_died;
    datagram.sign(key);
    return datagram;
}

}  // namespace

TEST_CASE("keyed_hash_gives_the_published_vectors") {
    HashKey key{0x0706050403020100ULL, 0x0f0e0d0c0b0a0908ULL};
    std::array<std::byte, 64> input{};
    for (std::size_t index = 0; index < input.size(); ++index) {
        input[index] = static_cast<std::byte>(index);
    }
    for (std::size_t bytes = 0; bytes < reference_hashes.size(); ++bytes) {
        CAPTURE(bytes);
        CHECK(compute_keyed_hash(key, input.data(), bytes) == reference_hashes[bytes]);
    }
}

TEST_CASE("changed_byte_of_a_datagram_is_detected") {
    const Datagram<NodeReport> original = make_stop_report(1, run_key);
    REQUIRE(original.is_authentic(run_key));
    for (std::size_t position = 0; position < sizeof original; ++position) {
        Datagram<NodeReport> changed = original;
        reinterpret_cast<unsigned char*>(&changed)[position] ^= 1U;
        CAPTURE(position);
        CHECK_FALSE(changed.is_authentic(run_key));
    }
    CHECK_FALSE(original.is_authentic({run_key[0], run_key[1] ^ 1U}));
    CHECK_FALSE(Datagram<NodeReport>{}.is_authentic({0, 0}));
}

TEST_CASE("replay_guard_accepts_ascending_numbers_once") {
    ReplayGuard guard(2);
    CHECK(guard.accept(1, 1));
    CHECK_FALSE(guard.accept(1, 1));
    CHECK(guard.accept(1, 5));
    CHECK_FALSE(guard.accept(1, 4));
    CHECK(guard.accept(0, 4));
    CHECK_FALSE(guard.accept(2, 9));
    CHECK_FALSE(guard.accept(-1, 9));
    CHECK_FALSE(guard.accept(0, 0));
}

TEST_CASE("hub_binds_to_one_address_only") {
    const WireNode hub(0, NodeAddress::loopback());
    REQUIRE(hub.address.port != 0);
    CHECK(hub.address.is_loopback());
    // The same port is free on every other address.
    sockaddr_in other{};
    other.sin_family = AF_INET;
    other.sin_port = hub.address.port;
    inet_pton(AF_INET, "127.0.0.2", &other.sin_addr);
    const int descriptor = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    CHECK(bind(descriptor, reinterpret_cast<const sockaddr*>(&other), sizeof other) == 0);
    close(descriptor);
}

TEST_CASE("hub_address_of_unknown_names_is_loopback") {
    const std::array<std::string, 3> names{"", "127.0.0.1", "::1"};
    CHECK(choose_hub_address(names) == NodeAddress::loopback());
    CHECK(choose_hub_address({}) == NodeAddress::loopback());
}

TEST_CASE("stop_of_a_node_reaches_the_hub") {
    const WireNode hub(0, NodeAddress::loopback());
    const WireNode node(1, hub.address);
    node.head->control.stop.store(NodeControl::quit_interrupt);
    CHECK(wait_until([&] { return hub.head->control.stop.load() == NodeControl::quit_interrupt; }));
    hub.head->control.is_first_task_done.store(1);
    CHECK(wait_until([&] { return node.head->control.is_first_task_done.load() == 1; }));
    CHECK(hub.head->foreign_datagrams.load() == 0);
    CHECK(hub.head->repeated_datagrams.load() == 0);
}

TEST_CASE("spoofed_datagrams_are_counted_and_ignored") {
    const WireNode hub(0, NodeAddress::loopback());
    const WireNode node(1, hub.address);
    REQUIRE(wait_until([&] { return hub.head->remote_nodes.load() == 1; }));
    const Intruder intruder(hub.address);
    const auto foreign = make_stop_report(1U << 20U, {1, 2});
    intruder.send(&foreign, sizeof foreign);
    const auto authentic = make_stop_report(1U << 20U, run_key);
    intruder.send(&authentic, sizeof authentic - 1);  // truncated
    std::array<char, sizeof authentic + 1> longer{};
    std::memcpy(longer.data(), &authentic, sizeof authentic);
    intruder.send(longer.data(), longer.size());
    intruder.send(longer.data(), 0);
    Datagram<HubReply> reply;  // of the right key, but for another recipient
    reply.sequence = 1U << 20U;
    reply.sign(run_key);
    intruder.send(&reply, sizeof reply);
    const auto replayed = make_stop_report(1, run_key);  // the node has sent this number itself
    intruder.send(&replayed, sizeof replayed);
    CHECK(wait_until([&] { return hub.head->foreign_datagrams.load() == 5; }));
    CHECK(wait_until([&] { return hub.head->repeated_datagrams.load() == 1; }));
    CHECK(hub.head->control.stop.load() == 0);
    CHECK(hub.head->broken_extent.load() == 0);
    // The same message in good order does stop the run: the test above could fail.
    intruder.send(&authentic, sizeof authentic);
    CHECK(wait_until([&] { return hub.head->control.stop.load() != 0; }));
}

TEST_CASE("flood_of_wrong_datagrams_loses_no_node") {
    const WireNode hub(0, NodeAddress::loopback());
    const WireNode node(1, hub.address);
    REQUIRE(wait_until([&] { return hub.head->remote_nodes.load() == 1; }));
    const Intruder intruder(hub.address);
    const auto foreign = make_stop_report(1U << 20U, {1, 2});
    for (int count = 0; count < 100'000; ++count) {
        intruder.send(&foreign, sizeof foreign);
    }
    node.head->control.stop.store(NodeControl::quit_time_limit);
    CHECK(wait_until([&] { return hub.head->control.stop.load() != 0; }));
    CHECK(hub.head->control.stop.load() == NodeControl::quit_time_limit);
    CHECK(hub.head->foreign_datagrams.load() > 100);
    CHECK(hub.head->broken_extent.load() == 0);
    CHECK(node.head->broken_extent.load() == 0);
}

TEST_CASE("report_to_another_node_is_not_received") {
    const WireNode hub(0, NodeAddress::loopback());
    const WireNode node(1, hub.address);
    REQUIRE(wait_until([&] { return hub.head->remote_nodes.load() == 1; }));
    const Intruder intruder(node.address);  // its socket is connected: the kernel delivers datagrams of the hub only
    Datagram<HubReply> reply;
    reply.sequence = 1U << 20U;
    reply.message.node = 1;
    reply.message.signals.stop = NodeControl::quit_error;
    reply.sign(run_key);
    sendto(intruder.descriptor, &reply, sizeof reply, 0, reinterpret_cast<const sockaddr*>(&intruder.name),
           intruder.size);
    hub.head->control.is_first_task_done.store(1);
    CHECK(wait_until([&] { return node.head->control.is_first_task_done.load() == 1; }));
    CHECK(node.head->control.stop.load() == 0);
}
