// SPDX-License-Identifier: Apache-2.0
// Random orders that need no memory: a permutation of 0 … n-1 computed entry by entry.
#pragma once

#include "plan/wide.hpp"

#include <cstdint>

namespace sonde::patterns {

/// Finalizer of SplitMix64 (Steele, Lea, Flood 2014): a bijection on 64 bits with good avalanche.
constexpr std::uint64_t mix64(std::uint64_t x) noexcept {
    x += 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27U)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31U);
}

/// Uniform number in 0 … n-1 from 64 random bits (Lemire's multiply-shift; bias below n / 2^64).
constexpr std::uint64_t scale(std::uint64_t bits, std::uint64_t n) noexcept {
    return static_cast<std::uint64_t>((static_cast<uint128>(bits) * n) >> 64U);
}

/// A keyed permutation of 0 … n-1: a Feistel network of six rounds over the next power of two, walked until it lands
/// inside (Black and Rogaway 2002). O(1) memory, expected below two walks an entry.
class Permutation {
 public:
    Permutation(std::uint64_t n, std::uint64_t key);
    std::uint64_t operator()(std::uint64_t index) const noexcept;
    std::uint64_t size() const noexcept { return n_; }

 private:
    std::uint64_t n_;
    std::uint64_t key_;
    unsigned low_bits_ = 1, high_bits_ = 1;
};

}  // namespace sonde::patterns
