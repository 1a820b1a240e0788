// SPDX-License-Identifier: Apache-2.0
// Zipf-distributed ranks: that the same seed chooses the same ones for ever, and where the formulas have their ends.
#include "patterns/zipf.hpp"

#include <doctest/doctest.h>
#include <cstdint>
#include <vector>

namespace {

std::vector<std::uint64_t> first_ranks(std::uint64_t n, double exponent, std::uint64_t seed, std::size_t count = 16) {
    const sonde::patterns::Zipf zipf(n, exponent, seed);
    std::vector<std::uint64_t> ranks;
    for (std::uint64_t i = 0; i < count; ++i) {
        ranks.push_back(zipf(i));
    }
    return ranks;
}

}  // namespace

TEST_CASE("Zipf: a seed gives the same ranks in every version") {
    // Computed by other code from the article's formulas with plain powers, and numbers of SplitMix64.
    using Ranks = std::vector<std::uint64_t>;
    CHECK(first_ranks(50, 0.5, 7) == Ranks{2, 25, 17, 29, 18, 28, 2, 18, 16, 28, 4, 20, 36, 27, 5, 38});
    CHECK(first_ranks(1000, 1.0, 7) == Ranks{1, 83, 31, 133, 37, 123, 1, 33, 26, 116, 2, 46, 283, 103, 4, 346});
    CHECK(first_ranks(1000, 2.5, 7) == Ranks{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 1, 1, 2});
    CHECK(first_ranks(1'000'000'000, 1.1, 7) ==
          Ranks{2, 4006, 331, 17247, 505, 13192, 1, 390, 233, 11030, 3, 872, 301805, 7699, 7, 759472});
}

TEST_CASE("Zipf: exponents near one agree, other seeds differ") {
    CHECK(first_ranks(1000, 1.0 + 1e-12, 7) == first_ranks(1000, 1.0, 7));
    CHECK(first_ranks(1000, 1.0 - 1e-12, 7) == first_ranks(1000, 1.0, 7));
    CHECK(first_ranks(1000, 1.0, 8) != first_ranks(1000, 1.0, 7));
}

TEST_CASE("Zipf: all ranks of few occur, and no other") {
    for (const double exponent : {0.01, 1.0, 10.0}) {
        std::uint64_t counts[3] = {};
        for (const std::uint64_t rank : first_ranks(2, exponent, 1, 20'000)) {
            REQUIRE(rank >= 1);
            REQUIRE(rank <= 2);
            ++counts[rank];
        }
        CHECK(counts[1] > 0);
        CHECK(counts[2] > 0);
        CHECK((exponent < 1.0 || counts[1] > counts[2]));
    }
}
