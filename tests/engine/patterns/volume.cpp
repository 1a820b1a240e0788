// SPDX-License-Identifier: Apache-2.0
// The volume of one task, and the segments that carry it.
#include "patterns/geometry.hpp"

#include <doctest/doctest.h>

using sonde::patterns::count_segments;
using sonde::patterns::volume_of_task;
using sonde::plan::Amount;

TEST_CASE("segments carry a volume: rounded up, at least one") {
    CHECK(count_segments(0, 10) == 1);
    CHECK(count_segments(1, 10) == 1);
    CHECK(count_segments(10, 10) == 1);
    CHECK(count_segments(11, 10) == 2);
    CHECK(count_segments(~0ULL, 1) == ~0ULL);
}

TEST_CASE("amount is divided among the tasks it applies to") {
    Amount amount;
    amount.bytes = 1000;
    CHECK(volume_of_task(amount, 8, 4, 0) == 1000);
    amount.per = Amount::Granularity::total;
    CHECK(volume_of_task(amount, 8, 4, 0) == 125);
    CHECK(volume_of_task(amount, 3, 3, 0) == 334);  // never less than asked
    amount.per = Amount::Granularity::node;
    CHECK(volume_of_task(amount, 8, 4, 0) == 250);
    amount.of = Amount::Basis::node_memory;
    amount.factor = 1.5;
    CHECK(volume_of_task(amount, 8, 4, 16'000) == 6000);
    amount.per = Amount::Granularity::task;
    CHECK(volume_of_task(amount, 8, 4, 16'000) == 24'000);
    amount.of = Amount::Basis::bytes;
    amount.bytes = (1ULL << 60U) + 1;
    amount.per = Amount::Granularity::total;
    CHECK(volume_of_task(amount, 1, 1, 0) == (1ULL << 60U) + 1);
}

TEST_CASE("an amount is one task's share of it, rounded up") {
    Amount amount;
    amount.bytes = 1001;
    CHECK(volume_of_task(amount, 8, 4, 0) == 1001);
    amount.per = Amount::Granularity::node;
    CHECK(volume_of_task(amount, 8, 4, 0) == 251);
    amount.per = Amount::Granularity::total;
    CHECK(volume_of_task(amount, 8, 4, 0) == 126);
    amount.of = Amount::Basis::node_memory;
    amount.factor = 0.5;
    CHECK(volume_of_task(amount, 8, 4, 1 << 20) == 1 << 16);
    amount.factor = 0.3;
    CHECK(volume_of_task(amount, 1, 1, 11) == 4);  // 3.3 bytes
    amount.factor = 1e6;
    CHECK(volume_of_task(amount, 1, 1, 1ULL << 60U) == 1ULL << 63U);  // more than any file holds, and no nonsense
    CHECK(count_segments(1, 10) == 1);
    CHECK(count_segments(0, 10) == 1);
    CHECK(count_segments(10, 10) == 1);
    CHECK(count_segments(11, 10) == 2);
}
