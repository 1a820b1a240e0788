// SPDX-License-Identifier: Apache-2.0
#include "patterns/permutation.hpp"

#include <bit>

namespace sonde::patterns {

Permutation::Permutation(std::uint64_t n, std::uint64_t key) : n_(n), key_(mix64(key)) {
    const auto bits = static_cast<unsigned>(std::bit_width(n > 1 ? n - 1 : 1));
    low_bits_ = bits / 2 > 0 ? bits / 2 : 1;
    high_bits_ = bits > low_bits_ ? bits - low_bits_ : 1;
}

std::uint64_t Permutation::operator()(std::uint64_t index) const noexcept {
    if (n_ < 2) {
        return index;
    }
    const std::uint64_t low_mask = (1ULL << low_bits_) - 1;
    const std::uint64_t high_mask = (1ULL << high_bits_) - 1;
    std::uint64_t value = index;
    do {
        std::uint64_t low = value & low_mask;
        std::uint64_t high = value >> low_bits_;
        // Alternating (unbalanced) Feistel: each half is changed three times by a keyed hash of the other.
        for (std::uint64_t round = 0; round < 3; ++round) {
            high ^= mix64(low + key_ + (round << 56U)) & high_mask;
            low ^= mix64(high ^ ~key_ ^ (round << 48U)) & low_mask;
        }
        value = (high << low_bits_) | low;
    } while (value >= n_);
    return value;
}

}  // namespace sonde::patterns
