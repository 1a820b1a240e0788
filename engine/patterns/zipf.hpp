// SPDX-License-Identifier: Apache-2.0
// Zipf-distributed ranks without a table: rejection-inversion after W. Hörmann and G. Derflinger, "Rejection-inversion
// to generate variates from monotone discrete distributions", ACM TOMACS 6 (1996) 169–184. O(1) memory and, on average,
// fewer than 1.3 tries a rank for every n and exponent.
#pragma once

#include <cstdint>

namespace sonde::patterns {

class Zipf {
 public:
    /// Ranks 1 … n with probability proportional to 1 / rank^exponent; n > 0, exponent > 0.
    Zipf(std::uint64_t n, double exponent, std::uint64_t seed);
    /// The rank of the `index`-th choice: a pure function, so that choices need no state.
    std::uint64_t operator()(std::uint64_t index) const noexcept;

 private:
    double integral(double x) const noexcept;  ///< of the density, up to x
    double inverse(double area) const noexcept;
    double density(double x) const noexcept;

    std::uint64_t n_, seed_;
    double exponent_, low_, high_, shift_;
};

}  // namespace sonde::patterns
