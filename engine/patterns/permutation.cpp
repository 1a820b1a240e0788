// SPDX-License-Identifier: Apache-2.0
#include "patterns/permutation.hpp"

#include <algorithm>
#include <bit>

namespace sonde::patterns {

Permutation::Permutation(std::uint64_t n, std::uint64_t key) : n_(std::max<std::uint64_t>(n, 1)) {
    const auto bits = static_cast<unsigned>(std::bit_width(n_ > 1 ? n_ - 1 : 1));
    low_bits_ = std::max(bits / 2, 1U);
    low_mask_ = (1ULL << low_bits_) - 1;
    low_shift_ = 64 - low_bits_;
    high_shift_ = 64 - std::max(bits - std::min(bits, low_bits_), 1U);
    std::uint64_t state = mix64(key);
    for (Round& round : rounds_) {
        round.factor = mix64(++state) | 1U;
        round.addend = mix64(++state);
    }
}

}  // namespace sonde::patterns
