// SPDX-License-Identifier: Apache-2.0
#include "model/ranges.hpp"

#include <doctest/doctest.h>

#include <bitset>
#include <random>

using sonde::buffer::Range;
using sonde::buffer::RangeSet;

TEST_CASE("range_set_equals_set_of_bytes_in_any_order") {
    constexpr std::uint32_t size = 500;
    std::mt19937 engine(7);
    const auto random = [&engine] { return static_cast<std::uint32_t>(engine()); };
    for (int round = 0; round < 2000; ++round) {
        RangeSet set;
        std::bitset<size> truth;
        for (int i = 0; i < 60; ++i) {
            const std::uint32_t begin = random() % (size - 1);
            const std::uint32_t end = begin + 1 + random() % std::min<std::uint32_t>(size - begin - 1, 12);
            const RangeSet before = set;
            if (set.add(begin, end)) {
                for (std::uint32_t byte = begin; byte < end; ++byte) {
                    truth.set(byte);
                }
            } else {
                REQUIRE(before.count() == RangeSet::capacity);
            }
        }
        REQUIRE(set.bytes() == truth.count());
        for (std::uint32_t i = 0; i + 1 < set.count(); ++i) {
            REQUIRE(set[i].end < set[i + 1].begin);  // sorted, and what touches is joined
        }
        const std::uint32_t from = random() % size;
        const std::uint32_t to = from + random() % (size - from + 1);
        bool all = true;
        std::uint32_t first_missing = to;
        for (std::uint32_t byte = from; byte < to; ++byte) {
            all &= truth.test(byte);
            first_missing = !truth.test(byte) && first_missing == to ? byte : first_missing;
        }
        const Range gap = set.gap(from, to);
        REQUIRE(gap.begin == first_missing);
        if (gap.begin < gap.end) {
            REQUIRE((gap.end == to || truth.test(gap.end)));
            REQUIRE(!truth.test(gap.end - 1));
        }
        if (from < to) {
            REQUIRE(set.covers(from, to) == all);
        }
    }
}
