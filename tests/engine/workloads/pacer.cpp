// SPDX-License-Identifier: Apache-2.0
// When limited operations are due.
#include "workloads/pacer.hpp"

#include <doctest/doctest.h>
#include <cstdint>
#include <optional>
#include <vector>

using sonde::workloads::Pacer;

namespace {

/// Due times of operations that all begin late, at a tick of 1000 * their number, on a clock of 1 MHz.
std::vector<std::uint64_t> due_times(std::optional<double> rate, std::optional<double> iops,
                                     const std::vector<std::uint32_t>& lengths) {
    sonde::plan::Io io;
    io.rate_limit = rate;
    io.iops_limit = iops;
    Pacer pacer(io, [](double seconds) { return seconds * 1e6; });
    std::vector<std::uint64_t> list;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
        list.push_back(pacer.begin_operation(5000 + 1000 * i, lengths[i]));
    }
    return list;
}

using Ticks = std::vector<std::uint64_t>;

}  // namespace

TEST_CASE("iops_limit_spaces_operations_evenly") {
    CHECK(due_times({}, 10'000.0, {1, 1, 1, 1}) == Ticks{5000, 5100, 5200, 5300});
}

TEST_CASE("rate_limit_spaces_operations_by_their_bytes") {
    CHECK(due_times(1e6, {}, {100, 300, 200, 1}) == Ticks{5000, 5100, 5400, 5600});
}

TEST_CASE("stricter_limit_decides_for_each_operation") {
    CHECK(due_times(1e6, 5000.0, {100, 300, 100, 1}) == Ticks{5000, 5200, 5500, 5700});
}

TEST_CASE("fractions_of_ticks_do_not_accumulate") {
    const Ticks due = due_times({}, 3.0, std::vector<std::uint32_t>(3001, 1));
    CHECK(due.back() == 5000 + 1'000'000'000ULL);
}
