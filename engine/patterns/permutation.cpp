// SPDX-License-Identifier: Apache-2.0
#include "patterns/permutation.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace sonde::patterns {

Permutation::Permutation(std::uint64_t n, std::uint64_t key) : n_(std::max<std::uint64_t>(n, 1)) {
    std::uint64_t state = mix64(key);
    if (n_ <= table_.size()) {
        for (std::size_t i = 0; i < n_; ++i) {
            const std::uint64_t place = scale(mix64(++state), i + 1);
            table_[i] = table_[place];
            table_[place] = static_cast<std::uint8_t>(i);
        }
        return;
    }
    const auto bits = static_cast<unsigned>(std::bit_width(n_ - 1));
    mask_ = ~0ULL >> (64 - bits);
    shift_ = (bits + 1) / 2;
    for (Round& round : rounds_) {
        round.factor = mix64(++state) | 1U;
        round.addend = mix64(++state);
    }
}

void Permutation::fill(std::uint64_t first, std::span<std::uint64_t> out) const noexcept {
    if (n_ <= table_.size()) {
        for (std::size_t k = 0; k < out.size(); ++k) {
            out[k] = table_[(first + k) % table_.size()];
        }
        return;
    }
    const Permutation one = *this;  // its keys in registers: `out` might be where they lie
    for (std::size_t k = 0; k < out.size(); ++k) {
        out[k] = one.mixed(first + k);
    }
    if (n_ == mask_ + 1) {
        return;
    }
    // Whether a number lies outside is a coin toss, which no processor predicts: those that do are gathered, not met.
    constexpr std::size_t most = 256;
    std::array<std::uint16_t, most> outside;
    for (std::size_t from = 0; from < out.size(); from += most) {
        const std::size_t part = std::min(most, out.size() - from);
        std::size_t count = 0;
        for (std::size_t k = 0; k < part; ++k) {
            outside[count] = static_cast<std::uint16_t>(k);
            count += out[from + k] >= n_ ? 1 : 0;
        }
        while (count > 0) {
            std::size_t left = 0;
            for (std::size_t k = 0; k < count; ++k) {
                std::uint64_t& value = out[from + outside[k]];
                value = one.mixed(value);
                outside[left] = outside[k];
                left += value >= n_ ? 1 : 0;
            }
            count = left;
        }
    }
}

}  // namespace sonde::patterns
