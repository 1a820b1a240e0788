// SPDX-License-Identifier: Apache-2.0
// Messages between processes over ssh: frames in pieces of any size, start orders, greetings.
#include "ranks/frame_link.hpp"
#include "ranks/team_error.hpp"
#include "remote/start_order.hpp"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <numeric>
#include <string>

namespace sonde::ranks {
namespace {

using remote::divide_processes;
using remote::node_greeting;
using remote::parse_start_order;
using remote::read_version;
using remote::serialize;
using remote::StartOrder;

std::array<int, 2> make_pair_of_sockets() {
    std::array<int, 2> ends{};
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) == 0);
    return ends;
}

TEST_CASE("frame arrives complete, however its bytes are divided") {
    const auto sent = make_pair_of_sockets(), received = make_pair_of_sockets();
    FrameLink sender(sent[0], sent[0]), receiver(received[0], received[0]);
    sender.append({FrameKind::message, 3, 5, std::string("a\0b", 3)});
    sender.append({FrameKind::ended, 2, all_processes, ""});
    REQUIRE(sender.flush());
    std::string bytes(4096, '\0');
    bytes.resize(static_cast<std::size_t>(read(sent[1], bytes.data(), bytes.size())));
    std::vector<Frame> frames;
    for (const char byte : bytes) {
        REQUIRE(write(received[1], &byte, 1) == 1);
        REQUIRE(receiver.read_available());
        while (auto frame = receiver.take_frame()) {
            frames.push_back(*frame);
        }
    }
    REQUIRE(frames.size() == 2);
    CHECK(frames[0].kind == FrameKind::message);
    CHECK((frames[0].from == 3 && frames[0].to == 5));
    CHECK(frames[0].content == std::string("a\0b", 3));
    CHECK(frames[1].kind == FrameKind::ended);
    CHECK((frames[1].from == 2 && frames[1].to == all_processes && frames[1].content.empty()));
    close(received[1]);
    CHECK_FALSE(receiver.read_available());
    close(sent[1]);
}

TEST_CASE("frames larger than the buffer of a socket arrive in order") {
    const auto ends = make_pair_of_sockets();
    FrameLink left(ends[0], ends[0]), right(ends[1], ends[1]);
    constexpr int count = 40;
    for (int i = 0; i < count; ++i) {
        left.append({FrameKind::message, i, 0, std::string(100'000, static_cast<char>('a' + i % 26))});
    }
    int next = 0;
    for (int rounds = 0; next < count && rounds < 100'000; ++rounds) {
        REQUIRE(left.flush());
        REQUIRE(right.read_available());
        while (auto frame = right.take_frame()) {
            CHECK(frame->from == next);
            CHECK(frame->content == std::string(100'000, static_cast<char>('a' + next % 26)));
            ++next;
        }
    }
    CHECK(next == count);
    CHECK_FALSE(left.has_unsent());
}

TEST_CASE("invalid frame is rejected") {
    const auto ends = make_pair_of_sockets();
    FrameLink receiver(ends[0], ends[0]);
    const std::string noise = "Welcome to this host, it is maintained on Mondays\n";
    REQUIRE(write(ends[1], noise.data(), noise.size()) == static_cast<ssize_t>(noise.size()));
    REQUIRE(receiver.read_available());
    CHECK_THROWS_AS(receiver.take_frame(), TeamError);
    close(ends[1]);
}

TEST_CASE("lines before the first frame are read individually") {
    const auto ends = make_pair_of_sockets();
    FrameLink left(ends[0], ends[0]), right(ends[1], ends[1]);
    const std::string text = "Last login: yesterday\n" + node_greeting() + "\n";
    REQUIRE(write(ends[0], text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    left.append({FrameKind::start, all_processes, all_processes, "order"});
    REQUIRE(left.flush());
    REQUIRE(right.read_available());
    CHECK(right.take_line() == "Last login: yesterday");
    CHECK(right.take_line() == node_greeting());
    CHECK(right.take_frame()->content == "order");
}

TEST_CASE("start order is read as written and refused where cut") {
    StartOrder order{2, 3, 7, 2, "n2", "job-1", "/a b/\n'c'", {"run", "", "--record"}, {"A=1", "B=x=y"}};
    const std::string text = serialize(order);
    const StartOrder parsed = parse_start_order(text);
    CHECK((parsed.first_process == 2 && parsed.process_count == 3 && parsed.processes == 7 && parsed.nodes == 2));
    CHECK((parsed.host == "n2" && parsed.job == "job-1" && parsed.directory == "/a b/\n'c'"));
    CHECK(parsed.command == order.command);
    CHECK(parsed.variables == order.variables);
    for (std::size_t length = 0; length < text.size(); ++length) {
        CHECK_THROWS_AS(parse_start_order(text.substr(0, length)), TeamError);
    }
    CHECK_THROWS_AS(parse_start_order("x" + text), TeamError);
    CHECK_THROWS_AS(parse_start_order("-" + text), TeamError);
}

TEST_CASE("version of a greeting is read from this and other versions") {
    CHECK_FALSE(read_version(node_greeting()).empty());
    CHECK(read_version("sonde-engine 9.8.7 waits for its start order") == "9.8.7");
    CHECK(read_version("sonde-engine: no such file").empty());
    CHECK(read_version("").empty());
}

TEST_CASE("processes are divided among hosts in equal parts") {
    for (int hosts = 1; hosts <= 9; ++hosts) {
        for (int processes = hosts; processes <= 30; ++processes) {
            const std::vector<int> counts = divide_processes(processes, hosts);
            CHECK(static_cast<int>(counts.size()) == hosts);
            CHECK(std::accumulate(counts.begin(), counts.end(), 0) == processes);
            CHECK(std::is_sorted(counts.rbegin(), counts.rend()));
            CHECK(counts.front() - counts.back() <= 1);
        }
    }
}

}  // namespace
}  // namespace sonde::ranks
