// SPDX-License-Identifier: Apache-2.0
#include "patterns/zipf.hpp"

#include "patterns/permutation.hpp"

#include <algorithm>
#include <cmath>

namespace sonde::patterns {
namespace {

/// (exp(x) - 1) / x and log(1 + x) / x, which are 1 at zero: for an exponent of one.
double expm1_over(double x) {
    return x != 0 ? std::expm1(x) / x : 1.0;
}
double log1p_over(double x) {
    return x != 0 ? std::log1p(x) / x : 1.0;
}

}  // namespace

Zipf::Zipf(std::uint64_t n, double exponent, std::uint64_t seed)
    : n_(n),
      seed_(mix64(seed ^ 0x7a697066ULL)),
      exponent_(exponent),
      low_(integral(1.5) - 1.0),
      high_(integral(static_cast<double>(n) + 0.5)),
      shift_(2.0 - inverse(integral(2.5) - density(2.0))) {
}

double Zipf::density(double x) const noexcept {
    return std::exp(-exponent_ * std::log(x));
}

double Zipf::integral(double x) const noexcept {
    const double log = std::log(x);
    return expm1_over((1.0 - exponent_) * log) * log;
}

double Zipf::inverse(double area) const noexcept {
    const double t = std::max(-1.0, area * (1.0 - exponent_));
    return std::exp(log1p_over(t) * area);
}

std::uint64_t Zipf::operator()(std::uint64_t index) const noexcept {
    std::uint64_t random = mix64(seed_ + index);
    for (;;) {
        random = mix64(random);
        const double uniform = static_cast<double>(random >> 11U) * 0x1p-53;
        const double area = high_ + uniform * (low_ - high_);
        const double x = inverse(area);
        const double rounded = std::clamp(std::floor(x + 0.5), 1.0, static_cast<double>(n_));
        if (rounded - x <= shift_ || area >= integral(rounded + 0.5) - density(rounded)) {
            return static_cast<std::uint64_t>(rounded);
        }
    }
}

}  // namespace sonde::patterns
