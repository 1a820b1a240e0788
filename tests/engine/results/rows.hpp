// SPDX-License-Identifier: Apache-2.0
// Tasks of which only the totals count: when they worked and what they moved.
#pragma once

#include "results/totals.hpp"

namespace sonde::tests {

constexpr std::int64_t second = 1'000'000'000;

/// A task of a node that worked from `start_ns` to `end_ns` and moved `bytes`.
inline results::TaskRow row_of(int task, int node, std::int64_t start_ns, std::int64_t end_ns, std::uint64_t bytes) {
    results::TaskRow row;
    row.task = task;
    row.node = node;
    row.bytes = bytes;
    row.start_ns = start_ns;
    row.end_ns = end_ns;
    return row;
}

}  // namespace sonde::tests
