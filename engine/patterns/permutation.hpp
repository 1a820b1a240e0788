// SPDX-License-Identifier: Apache-2.0
// Random orders that need no memory: a permutation of 0 … n-1 computed entry by entry.
#pragma once

#include "plan/uint128.hpp"

#include <array>
#include <cstdint>
#include <span>

namespace sonde::patterns {

/// Finalizer of SplitMix64 (Steele, Lea, Flood 2014): a bijection on 64 bits with good avalanche.
constexpr std::uint64_t mix64(std::uint64_t x) noexcept {
    x += 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27U)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31U);
}

/// Uniform number in 0 … n-1 from 64 random bits (Lemire's multiply-shift; bias below n / 2^64).
constexpr std::uint64_t scale_to_range(std::uint64_t bits, std::uint64_t n) noexcept {
    return static_cast<std::uint64_t>((static_cast<uint128>(bits) * n) >> 64U);
}

/// A keyed permutation of 0 … n-1 in O(1) memory. Sizes up to 256 are a shuffled table (R. Durstenfeld, CACM 7 (1964)
/// 420). Others are rounds of a multiplication by an odd key, an addition, and a shift to the right that is added in,
/// each of them a bijection on the next power of two (as A. Kensler, Pixar Technical Memo 13-01, 2013, has them),
/// walked until it lands inside (J. Black, P. Rogaway, CT-RSA 2002): fewer than two walks an entry are expected. It
/// runs beside the timed loop: six instructions a round, and in fill_offsets() for four numbers at once. Not for
/// secrets.
///
/// Which order a key gives is part of what a run's files hold: whoever changes it raises `rule`.
class Permutation {
 public:
    /// Number of this order. The manifest stores it with data whose order later phases must know.
    static constexpr int order_version = 2;

    Permutation(std::uint64_t n, std::uint64_t key);
    std::uint64_t operator()(std::uint64_t index) const noexcept {
        if (n_ <= table_.size()) {
            return table_[index % table_.size()];  // the remainder is for the compiler: index < n
        }
        std::uint64_t value = index;
        do {
            value = mix_value(value);
        } while (value >= n_);
        return value;
    }
    /// The numbers at `first`, `first` + 1, … : the same as one by one, with fewer surprises for the processor.
    void fill(std::uint64_t first, std::span<std::uint64_t> out) const noexcept;
    std::uint64_t size() const noexcept { return n_; }

 private:
    struct Round {
        std::uint64_t factor = 1, addend = 0;
    };
    /// Each value becomes mix_value() of it.
    void mix_values(std::span<std::uint64_t> values) const noexcept;
    std::uint64_t mix_value(std::uint64_t value) const noexcept {
#pragma GCC unroll 8
        for (const Round& round : rounds_) {
            value = (value * round.factor + round.addend) & mask_;
            value ^= value >> shift_;
        }
        return value;
    }

    std::uint64_t n_;
    std::uint64_t mask_ = 0;
    unsigned shift_ = 1;
    std::array<Round, 6> rounds_;
    std::array<std::uint8_t, 256> table_;
};

}  // namespace sonde::patterns
