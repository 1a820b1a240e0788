// SPDX-License-Identifier: Apache-2.0
#include "model/ranges.hpp"

#include <doctest/doctest.h>

#include <bitset>
#include <random>

using sonde::buffer::Range;
using sonde::buffer::RangeSet;

TEST_CASE("a set of ranges is the set of its bytes, whatever the order they come in") {
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
                for (std::uint32_t at = begin; at < end; ++at) {
                    truth.set(at);
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
        for (std::uint32_t at = from; at < to; ++at) {
            all &= truth.test(at);
            first_missing = !truth.test(at) && first_missing == to ? at : first_missing;
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
