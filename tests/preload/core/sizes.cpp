// SPDX-License-Identifier: Apache-2.0
#include "system/frequent_values.hpp"
#include "system/transfer_size_class.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>

TEST_CASE("sizes fall into Darshan's classes, at every edge") {
    constexpr std::uint64_t limits[] = {100,       1024,       10240,       102400,   1U << 20U,
                                        4U << 20U, 10U << 20U, 100U << 20U, 1U << 30U};
    std::mt19937_64 random(1);
    const auto truth = [&](std::uint64_t bytes) {
        return static_cast<unsigned>(std::lower_bound(std::begin(limits), std::end(limits), bytes) -
                                     std::begin(limits));
    };
    for (const std::uint64_t limit : limits) {
        for (const std::uint64_t bytes : {limit - 1, limit, limit + 1}) {
            CAPTURE(bytes);
            CHECK(sonde::system::find_transfer_size_class(bytes) == truth(bytes));
        }
    }
    for (unsigned bits = 0; bits < 64; ++bits) {
        for (const std::uint64_t bytes :
             {(1ULL << bits) - 1, 1ULL << bits, (1ULL << bits) + random() % (1ULL << bits)}) {
            CAPTURE(bytes);
            CHECK(sonde::system::find_transfer_size_class(bytes) == truth(bytes));
        }
    }
}

TEST_CASE("frequent_values_are_exact_while_few") {
    std::mt19937 engine(4);
    const auto random = [&engine] { return static_cast<unsigned>(engine()); };
    for (int round = 0; round < 200; ++round) {
        sonde::system::FrequentValues frequent;
        std::map<std::int64_t, std::uint64_t> truth;
        const unsigned values = 1 + random() % 30;
        for (int i = 0; i < 3000; ++i) {
            const std::int64_t value = random() % 3 == 0 ? 77 : static_cast<std::int64_t>(random() % values);
            frequent.add(value);
            ++truth[value];
        }
        bool is_found = false;
        for (unsigned i = 0; i < sonde::system::FrequentValues::capacity; ++i) {
            if (frequent.count(i) > 0) {
                REQUIRE(frequent.count(i) <= truth[frequent.value(i)]);
                REQUIRE((truth.size() > sonde::system::FrequentValues::capacity ||
                         frequent.count(i) == truth[frequent.value(i)]));
            }
            is_found |= frequent.value(i) == 77 && frequent.count(i) > 0;
        }
        REQUIRE(is_found);
    }
}
