// SPDX-License-Identifier: Apache-2.0
// Messages between nodes that measure the offset of their clocks.
#pragma once

#include "ranks/clock_alignment.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>

namespace sonde::ranks {

/// CLOCK_MONOTONIC in nanoseconds.
std::int64_t monotonic_ns();

/// Transport of messages to another node; each function returns false when that node is lost.
struct ClockExchangeChannel {
    std::function<bool(int node, const void* data, std::size_t bytes)> send;
    std::function<bool(int node, void* data, std::size_t bytes)> receive;
};

/// Measures the offset of the clock of node 0 to this node's; every node calls it. Each node measures its offset to its
/// parent in the tree of reduce_in_tree(): log2(nodes) steps, so at most as many errors add up. Returns false when a
/// node is lost.
bool measure_offset_to_root(int node, int nodes, const ClockExchangeChannel& channel, ClockOffset& own_offset);

}  // namespace sonde::ranks
