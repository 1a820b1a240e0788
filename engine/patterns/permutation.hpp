// SPDX-License-Identifier: Apache-2.0
// Random orders that need no memory: a permutation of 0 … n-1 computed entry by entry.
#pragma once

#include "plan/wide.hpp"

#include <array>
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

/// A keyed permutation of 0 … n-1: a Feistel network over the next power of two, walked until it lands inside (Black
/// and Rogaway 2002). O(1) memory, expected below two walks an entry. Six rounds of two multiplications each, because
/// this runs beside the timed loop; small n, whose halves have few bits to mix, get four times as many. Not for
/// secrets.
class Permutation {
 public:
    Permutation(std::uint64_t n, std::uint64_t key);
    std::uint64_t operator()(std::uint64_t index) const noexcept {
        std::uint64_t value = index;
        do {
            value = six_rounds(value, 0);
            if (low_bits_ < enough_bits) [[unlikely]] {
                value = six_rounds(six_rounds(six_rounds(value, 1), 2), 3);
            }
        } while (value >= n_);
        return value;
    }
    std::uint64_t size() const noexcept { return n_; }

 private:
    static constexpr unsigned enough_bits = 4;  ///< in each half
    struct Round {
        std::uint64_t factor = 1, addend = 0;
        std::uint64_t of(std::uint64_t half) const noexcept {
            const std::uint64_t bits = half * factor + addend;
            return (bits ^ (bits >> 32U)) * 0xbf58476d1ce4e5b9ULL;
        }
    };

    /// Alternating (unbalanced) Feistel: each half is changed three times by a keyed hash of the other.
    std::uint64_t six_rounds(std::uint64_t value, std::uint64_t again) const noexcept {
        std::uint64_t low = value & low_mask_;
        std::uint64_t high = value >> low_bits_;
        const std::uint64_t tweak = again * 0x9e3779b97f4a7c15ULL;
        for (std::size_t i = 0; i < rounds_.size(); i += 2) {
            high ^= rounds_[i].of(low + tweak) >> high_shift_;
            low ^= rounds_[i + 1].of(high + tweak) >> low_shift_;
        }
        return (high << low_bits_) | low;
    }

    std::uint64_t n_;
    std::uint64_t low_mask_ = 1;
    unsigned low_bits_ = 1, low_shift_ = 63, high_shift_ = 63;
    std::array<Round, 6> rounds_;
};

}  // namespace sonde::patterns
