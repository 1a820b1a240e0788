// SPDX-License-Identifier: Apache-2.0
// Reproducible random numbers: functions of a seed and a purpose, so that an added part of a machine does not change
// the numbers of the others. Computed from integers, additions and the C library's log and sqrt.
#pragma once

#include "kernel/time.hpp"

#include <cmath>
#include <cstdint>

namespace sonde::simulate {

/// Finalizer of SplitMix64 (Steele, Lea, Flood 2014).
constexpr std::uint64_t mix_bits(std::uint64_t x) noexcept {
    x += 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27U)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31U);
}
/// Uniform in (0, 1), never 0 or 1.
constexpr double to_uniform(std::uint64_t bits) noexcept {
    return (static_cast<double>(bits >> 12U) + 0.5) * 0x1p-52;
}

/// A sequence of random numbers.
class Random {
 public:
    explicit Random(std::uint64_t seed, std::uint64_t purpose = 0) noexcept
        : state_(mix_bits(mix_bits(seed) ^ purpose)) {}
    std::uint64_t bits() noexcept { return mix_bits(state_++); }
    double uniform() noexcept { return to_uniform(bits()); }
    /// Exponential with mean 1.
    double exponential() noexcept { return -std::log(uniform()); }
    /// Uniform in 0 … n-1; n > 0.
    std::uint64_t integer_below(std::uint64_t n) noexcept {
        return static_cast<std::uint64_t>(uniform() * static_cast<double>(n));
    }

 private:
    std::uint64_t state_;
};

/// Slowdown of a part over time: one-sided and autocorrelated, like measured rates of production file systems (48
/// histories of one year: far more runs are 20 % low than 20 % high, and consecutive runs are similar). The factor is
/// 1 + s * E with E exponential of mean 1 and s = cv / (1 - cv), so that the coefficient of variation is cv. E comes
/// from a Gaussian moving average over `memory` steps with weights rho^k. It is a function of time: factor() may be
/// called for times in any order.
class SlowdownNoise {
 public:
    /// `cv` in [0, 1); `step` in ns is the lag at which the correlation is `rho`.
    SlowdownNoise(std::uint64_t seed, std::uint64_t part, double cv, Time step = 1'000'000'000,
                  double rho = 0.7) noexcept
        : seed_(mix_bits(mix_bits(seed) ^ part)),
          spread_(cv > 0 && cv < 1 ? cv / (1 - cv) : 0),
          step_(step),
          correlation_(rho) {}

    /// At least 1.
    double factor(Time time) noexcept {
        if (spread_ <= 0) {
            return 1;
        }
        const std::int64_t cell = time / step_;
        if (cell != interval_) {
            interval_ = cell;
            factor_ = 1 - spread_ * std::log(0.5 * std::erfc(gaussian_average(cell) * 0.70710678118654752));
        }
        return factor_;
    }

 private:
    /// Standard normal.
    double gaussian_average(std::int64_t cell) const noexcept {
        constexpr int memory = 24;
        double sum = 0, squares = 0, weight = 1;
        for (int k = 0; k < memory; ++k) {
            sum += weight * normal(cell - k);
            squares += weight * weight;
            weight *= correlation_;
        }
        return sum / std::sqrt(squares);
    }
    /// Sum of twelve uniform numbers minus six: close to normal within three standard deviations, and exact.
    double normal(std::int64_t cell) const noexcept {
        double sum = -6;
        std::uint64_t bits = mix_bits(seed_ ^ static_cast<std::uint64_t>(cell));
        for (int i = 0; i < 12; ++i) {
            bits = mix_bits(bits);
            sum += to_uniform(bits);
        }
        return sum;
    }

    std::uint64_t seed_;
    double spread_;
    Time step_;
    double correlation_;
    std::int64_t interval_ = -1;
    double factor_ = 1;
};

}  // namespace sonde::simulate
