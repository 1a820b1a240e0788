// SPDX-License-Identifier: Apache-2.0
// Draws slots that are not equally popular. With n slots, u uniform in [0, 1) and z standard normal:
//     zipf    rank r of 1 … n with probability proportional to 1 / r^theta (patterns/zipf.hpp)
//     pareto  rank floor(n * u^p), p = log(share) / log(1 - share): the first share of the ranks gets 1 - share of the
//             draws, and so does the first share of these (J. Gray et al., "Quickly generating billion-record synthetic
//             databases", SIGMOD 1994, section 3.2.2, self-similar distribution; fio names it pareto)
//     normal  slot floor(n * (1 / 2 + deviation * z)), drawn again while it is outside of 0 … n - 1
// The ranks of zipf and pareto are permuted, so that popular slots are not neighbors, and the order is the same in
// every pass. Slots of normal are not permuted.
#pragma once

#include "patterns/permutation.hpp"
#include "patterns/zipf.hpp"
#include "plan/plan.hpp"

#include <cstdint>

namespace sonde::patterns {

class SkewedDraw {
 public:
    /// Slots 0 … n - 1, n > 0; `key` chooses which of them are popular.
    SkewedDraw(const plan::Distribution& distribution, std::uint64_t n, std::uint64_t key);
    /// The slot for 64 random bits.
    std::uint64_t operator()(std::uint64_t bits) const noexcept;

 private:
    std::uint64_t draw_rank(std::uint64_t bits) const noexcept;
    std::uint64_t draw_normal(std::uint64_t bits) const noexcept;

    plan::DistributionKind kind_;
    std::uint64_t n_;
    double power_, deviation_;
    Zipf zipf_;
    Permutation rank_to_slot_;
};

}  // namespace sonde::patterns
