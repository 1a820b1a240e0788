// SPDX-License-Identifier: Apache-2.0
#include "ranks/clock_exchange.hpp"

#include <array>
#include <chrono>
#include <vector>

namespace sonde::ranks {
namespace {

constexpr int clock_rounds = 24;

// Remote side of the clock measurement: answers each message with the times of its arrival and of the answer.
bool answer_clock_exchange(int node, const ClockExchangeChannel& channel, const ClockOffset& own_offset) {
    for (int round = 0; round < clock_rounds; ++round) {
        char request = 0;
        if (!channel.receive(node, &request, sizeof request)) {
            return false;
        }
        std::array<std::int64_t, 2> times{monotonic_ns(), 0};
        times[1] = monotonic_ns();
        if (!channel.send(node, times.data(), sizeof times)) {
            return false;
        }
    }
    return channel.send(node, &own_offset, sizeof own_offset);
}

bool measure_offset(int node, const ClockExchangeChannel& channel, ClockOffset& own_offset) {
    std::vector<ClockExchange> exchanges(clock_rounds);
    for (ClockExchange& exchange : exchanges) {
        const char request = 0;
        std::array<std::int64_t, 2> times{};
        exchange.sent_ns = monotonic_ns();
        if (!channel.send(node, &request, sizeof request) || !channel.receive(node, times.data(), sizeof times)) {
            return false;
        }
        exchange.returned_ns = monotonic_ns();
        exchange.received_ns = times[0];
        exchange.answered_ns = times[1];
    }
    ClockOffset peer_offset;
    if (!channel.receive(node, &peer_offset, sizeof peer_offset)) {
        return false;
    }
    // The first exchange may include the setup of a connection; it is valid, but its interval is wide.
    own_offset = add_offsets(estimate_offset(exchanges), peer_offset);
    return true;
}

}  // namespace

bool measure_offset_to_root(int node, int nodes, const ClockExchangeChannel& channel, ClockOffset& own_offset) {
    const int lowest = node == 0 ? 1 << 30 : node & -node;
    if (node != 0 && !measure_offset(node - lowest, channel, own_offset)) {
        return false;
    }
    int step = 1;
    while (step < lowest && node + step < nodes) {
        step *= 2;
    }
    // The largest subtree first, because it has the most steps left.
    for (step /= 2; step >= 1; step /= 2) {
        if (node + step < nodes && !answer_clock_exchange(node + step, channel, own_offset)) {
            return false;
        }
    }
    return true;
}

std::int64_t monotonic_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

}  // namespace sonde::ranks
