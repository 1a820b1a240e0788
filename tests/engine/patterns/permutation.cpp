// SPDX-License-Identifier: Apache-2.0
// Random orders without memory: each number once, and no place preferred.
#include "patterns/permutation.hpp"

#include <doctest/doctest.h>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

using sonde::patterns::mix64;
using sonde::patterns::Permutation;
using sonde::patterns::scale_to_range;

namespace {

/// True when 0 … n-1 each come out once.
bool is_bijection(std::uint64_t n, std::uint64_t key) {
    const Permutation permute(n, key);
    std::vector<bool> seen(n, false);
    for (std::uint64_t i = 0; i < n; ++i) {
        const std::uint64_t value = permute(i);
        if (value >= n || seen[value]) {
            return false;
        }
        seen[value] = true;
    }
    return true;
}

/// Chi-square statistic of `counts` against equal shares.
double chi_square(const std::vector<std::uint64_t>& counts) {
    double total = 0;
    for (const std::uint64_t count : counts) {
        total += static_cast<double>(count);
    }
    const double expected = total / static_cast<double>(counts.size());
    double sum = 0;
    for (const std::uint64_t count : counts) {
        sum += (static_cast<double>(count) - expected) * (static_cast<double>(count) - expected) / expected;
    }
    return sum;
}

/// Value that a chi-square variable with `freedom` degrees exceeds once in about 30,000 (Wilson and Hilferty, z = 4).
double critical(std::size_t freedom) {
    const auto k = static_cast<double>(freedom);
    const double base = 1 - 2 / (9 * k) + 4 * std::sqrt(2 / (9 * k));
    return k * base * base * base;
}

}  // namespace

TEST_CASE("every size from 1 to 200 is permuted without loss") {
    for (std::uint64_t n = 1; n <= 200; ++n) {
        for (std::uint64_t key = 0; key < 20; ++key) {
            CAPTURE(n);
            CAPTURE(key);
            REQUIRE(is_bijection(n, key));
        }
    }
}

TEST_CASE("sizes near powers of two are permuted without loss") {
    for (const std::uint64_t n : {4095ULL, 4096ULL, 4097ULL, 65'535ULL, 65'537ULL, 1'000'003ULL, 1ULL << 20U}) {
        CAPTURE(n);
        CHECK(is_bijection(n, 42));
    }
}

TEST_CASE("many numbers at once are the same as one by one") {
    // From 257 to 2^32 four are computed at a time.
    for (const std::uint64_t n : {7ULL, 256ULL, 257ULL, 1000ULL, 4096ULL, 4097ULL, 100'000ULL, (1ULL << 31U) + 1,
                                  (1ULL << 32U) - 1, 1ULL << 32U, (1ULL << 32U) + 1, 3ULL << 40U}) {
        const Permutation permute(n, 11);
        for (const std::uint64_t first : {std::uint64_t{0}, n / 3, n - std::min<std::uint64_t>(n, 3), n - 1}) {
            std::vector<std::uint64_t> out(std::min<std::uint64_t>(n - first, 701));
            permute.fill(first, out);
            for (std::size_t k = 0; k < out.size(); ++k) {
                CAPTURE(n);
                REQUIRE(out[k] == permute(first + k));
            }
        }
    }
}

TEST_CASE("the largest size stays inside itself") {
    const std::uint64_t n = (1ULL << 62U) + 12'345;
    const Permutation permute(n, 7);
    for (std::uint64_t i = 0; i < 1000; ++i) {
        CHECK(permute(n - 1 - i) < n);
        CHECK(permute(i) < n);
    }
}

TEST_CASE("over many keys all numbers and positions are equally likely") {
    // Small ones are a table; 257 is the smallest that is computed, 300 one that is walked.
    for (const std::uint64_t n : {5ULL, 12ULL, 64ULL, 257ULL, 300ULL}) {
        std::vector<std::uint64_t> counts(n * n, 0);
        const std::uint64_t keys = n > 64 ? 20 * n : 400 * n;
        for (std::uint64_t key = 0; key < keys; ++key) {
            const Permutation permute(n, key);
            for (std::uint64_t i = 0; i < n; ++i) {
                ++counts[i * n + permute(i)];
            }
        }
        CAPTURE(n);
        CHECK(chi_square(counts) < critical((n - 1) * (n - 1)));
    }
}

TEST_CASE("distances between successive positions look random") {
    // A shuffle that keeps neighbors together would flatter read-ahead.
    constexpr std::uint64_t n = 100'000;
    constexpr std::size_t cells = 100;
    const Permutation permute(n, 3);
    std::vector<std::uint64_t> counts(cells, 0);
    std::uint64_t next_door = 0;
    for (std::uint64_t i = 0; i + 1 < n; ++i) {
        const std::uint64_t step = (permute(i + 1) + n - permute(i)) % n;
        ++counts[step * cells / n];
        next_door += step == 1 || step == n - 1 ? 1U : 0U;
    }
    CHECK(chi_square(counts) < critical(cells - 1));
    CHECK(next_door < 20);  // two are expected
}

TEST_CASE("distances of permuted pairs are uniformly distributed") {
    // A mixer that does not reach the high bits fails first at distances of n / 2, n / 4 and n / 8.
    constexpr std::uint64_t n = 512;
    for (const std::uint64_t distance : {1ULL, 2ULL, 64ULL, 128ULL, 256ULL}) {
        std::vector<std::uint64_t> counts(n - 1, 0);
        for (std::uint64_t key = 0; key < 100'000; ++key) {
            const Permutation permute(n, key);
            ++counts[(permute(100 + distance) + n - permute(100)) % n - 1];
        }
        CAPTURE(distance);
        CHECK(chi_square(counts) < critical(n - 2));
    }
}

TEST_CASE("neighboring keys give unrelated orders") {
    constexpr std::uint64_t n = 10'000;
    std::uint64_t equal = 0;
    const Permutation first(n, 1);
    const Permutation second(n, 2);
    for (std::uint64_t i = 0; i < n; ++i) {
        equal += first(i) == second(i) ? 1U : 0U;
    }
    CHECK(equal < 12);  // one is expected
}

TEST_CASE("scaling random bits reaches exactly the numbers of the range") {
    CHECK(scale_to_range(0, 10) == 0);
    CHECK(scale_to_range(~0ULL, 10) == 9);
    CHECK(scale_to_range(~0ULL, 1) == 0);
    std::vector<std::uint64_t> counts(7, 0);
    for (std::uint64_t i = 0; i < 70'000; ++i) {
        ++counts.at(scale_to_range(mix64(i), 7));
    }
    CHECK(chi_square(counts) < critical(6));
}

TEST_CASE("order of a key equals that of stored rule-2 data") {
    // Computed from the description in permutation.hpp by other code: another order is another rule.
    REQUIRE(Permutation::order_version == 2);
    CHECK(mix64(0) == 0xe220a8397b1dcdafULL);  // the first number of SplitMix64 with seed 0
    CHECK(mix64(1) == 0x910a2dec89025cc1ULL);
    const auto first = [](std::uint64_t n, std::uint64_t key, std::size_t count) {
        std::vector<std::uint64_t> numbers(count);
        Permutation(n, key).fill(0, numbers);
        for (std::size_t i = 0; i < count; ++i) {
            REQUIRE(Permutation(n, key)(i) == numbers[i]);
        }
        return numbers;
    };
    using Numbers = std::vector<std::uint64_t>;
    CHECK(first(10, 1, 10) == Numbers{0, 7, 8, 3, 2, 1, 5, 9, 4, 6});
    CHECK(first(256, 5, 6) == Numbers{142, 232, 154, 22, 187, 107});  // the largest that is a table
    CHECK(first(257, 5, 6) == Numbers{111, 25, 188, 197, 253, 215});
    CHECK(first(1000, 1, 6) == Numbers{488, 258, 109, 254, 146, 623});
    CHECK(first(1U << 20U, 7, 6) == Numbers{179285, 60458, 11587, 314420, 181181, 11846});
    CHECK(first(1'000'000'000'000, 3, 4) == Numbers{522598573088, 473446156712, 561980111986, 321800908459});
    CHECK(Permutation(0, 1).size() == 1);
}
