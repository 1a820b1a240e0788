// SPDX-License-Identifier: Apache-2.0
#include "patterns/skewed_draw.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace sonde::patterns {
namespace {

constexpr double default_theta = 1.2, default_share = 0.2, default_deviation = 0.1;

/// In [0, 1), from the highest 53 bits.
double to_unit(std::uint64_t bits) noexcept {
    return static_cast<double>(bits >> 11U) * 0x1p-53;
}

double compute_power(double share) {
    return std::log(share) / std::log(1 - share);
}

}  // namespace

SkewedDraw::SkewedDraw(const plan::Distribution& distribution, std::uint64_t n, std::uint64_t key)
    : kind_(distribution.kind),
      n_(n),
      power_(compute_power(distribution.share.value_or(default_share))),
      deviation_(distribution.deviation.value_or(default_deviation)),
      zipf_(n, distribution.theta.value_or(default_theta), key),
      rank_to_slot_(n, mix64(key ^ 0x736b6577ULL)) {
}

std::uint64_t SkewedDraw::operator()(std::uint64_t bits) const noexcept {
    if (kind_ == plan::DistributionKind::uniform) {
        return scale_to_range(bits, n_);
    }
    return kind_ == plan::DistributionKind::normal ? draw_normal(bits) : rank_to_slot_(draw_rank(bits));
}

std::uint64_t SkewedDraw::draw_rank(std::uint64_t bits) const noexcept {
    if (kind_ == plan::DistributionKind::zipf) {
        return zipf_(bits) - 1;
    }
    const double rank = static_cast<double>(n_) * std::pow(to_unit(bits), power_);
    return std::min(static_cast<std::uint64_t>(rank), n_ - 1);
}

/// By G. E. P. Box and M. E. Muller, Ann. Math. Stat. 29 (1958) 610.
std::uint64_t SkewedDraw::draw_normal(std::uint64_t bits) const noexcept {
    const auto range = static_cast<double>(n_);
    for (std::uint64_t state = bits;; state = mix64(state + 2)) {
        const double radius = std::sqrt(-2 * std::log(1 - to_unit(mix64(state))));
        const double z = radius * std::cos(2 * std::numbers::pi * to_unit(mix64(state + 1)));
        const double slot = range * (0.5 + deviation_ * z);
        if (slot >= 0 && slot < range) {
            return static_cast<std::uint64_t>(slot);
        }
    }
}

}  // namespace sonde::patterns
