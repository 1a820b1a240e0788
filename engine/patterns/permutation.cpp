// SPDX-License-Identifier: Apache-2.0
#include "patterns/permutation.hpp"

#include <algorithm>
#include <bit>
#include <tuple>
#include <utility>

namespace sonde::patterns {

namespace {

/// FourValues numbers below 2^32, which any processor multiplies at once: products modulo a power of two up to that
/// need no more of their factors.
using FourValues = std::uint32_t __attribute__((vector_size(16)));

}  // namespace

Permutation::Permutation(std::uint64_t n, std::uint64_t key) : n_(std::max<std::uint64_t>(n, 1)) {
    std::uint64_t state = mix64(key);
    if (n_ <= table_.size()) {
        for (std::size_t i = 0; i < n_; ++i) {
            const std::uint64_t index = scale_to_range(mix64(++state), i + 1);
            table_[i] = table_[index];
            table_[index] = static_cast<std::uint8_t>(i);
        }
        return;
    }
    const auto bits = static_cast<unsigned>(std::bit_width(n_ - 1));
    mask_ = ~0ULL >> std::countl_zero(n_ - 1);
    shift_ = (bits + 1) / 2;
    for (Round& round : rounds_) {
        round.factor = mix64(++state) | 1U;
        round.addend = mix64(++state);
    }
}

void Permutation::mix_values(std::span<std::uint64_t> values) const noexcept {
    const Permutation copy = *this;  // its keys in registers: `values` might be where they lie
    std::size_t k = 0;
    if (mask_ <= ~std::uint32_t{0}) {
        const auto narrow = [](std::uint64_t value) { return static_cast<std::uint32_t>(value); };
        const auto four_times = [narrow](std::uint64_t value) { return FourValues{} + narrow(value); };
        std::array<FourValues, std::tuple_size_v<decltype(rounds_)>> factors, addends;
        for (std::size_t i = 0; i < factors.size(); ++i) {
            factors[i] = four_times(rounds_[i].factor);
            addends[i] = four_times(rounds_[i].addend);
        }
        const FourValues mask = four_times(mask_);
        const auto shift = static_cast<int>(shift_);
        for (; k + 4 <= values.size(); k += 4) {
            std::uint64_t* const group = values.data() + k;
            FourValues four{narrow(group[0]), narrow(group[1]), narrow(group[2]), narrow(group[3])};
#pragma GCC unroll 8
            for (std::size_t i = 0; i < factors.size(); ++i) {
                four = (four * factors[i] + addends[i]) & mask;
                four ^= four >> shift;
            }
            for (std::size_t i = 0; i < 4; ++i) {
                group[i] = four[i];
            }
        }
    }
    for (; k < values.size(); ++k) {
        values[k] = copy.mix_value(values[k]);
    }
}

void Permutation::fill(std::uint64_t first, std::span<std::uint64_t> out) const noexcept {
    if (n_ <= table_.size()) {
        for (std::size_t k = 0; k < out.size(); ++k) {
            out[k] = table_[(first + k) % table_.size()];
        }
        return;
    }
#pragma GCC unroll 4
    for (std::uint64_t& value : out) {
        value = first++;
    }
    mix_values(out);
    if (n_ == mask_ + 1) {
        return;
    }
    // Whether a number lies outside is a coin toss, which no processor predicts: those that do are gathered, not met.
    constexpr std::size_t most = 256;
    std::array<std::uint64_t, most> values;
    std::array<std::uint16_t, most> places;
    for (std::size_t from = 0; from < out.size(); from += most) {
        const std::size_t part = std::min(most, out.size() - from);
        std::size_t count = 0;
        for (std::size_t k = 0; k < part; ++k) {
            values[count] = out[from + k];
            places[count] = static_cast<std::uint16_t>(k);
            count += values[count] >= n_ ? 1 : 0;
        }
        while (count > 0) {
            mix_values({values.data(), count});
            std::size_t remaining = 0;
            for (std::size_t k = 0; k < count; ++k) {
                const std::uint64_t value = values[k];
                out[from + places[k]] = value;
                values[remaining] = value;
                places[remaining] = places[k];
                remaining += value >= n_ ? 1 : 0;
            }
            count = remaining;
        }
    }
}

}  // namespace sonde::patterns
