// SPDX-License-Identifier: Apache-2.0
// Chance that is the same everywhere: numbers are functions of a seed and of what they are for, so that adding a part
// to a machine changes nothing of the others. Made of integers, additions and the C library's log and sqrt.
#pragma once

#include "kernel/time.hpp"

#include <cmath>
#include <cstdint>

namespace sonde::simulate {

/// Finalizer of SplitMix64 (Steele, Lea, Flood 2014).
constexpr std::uint64_t mixed(std::uint64_t x) noexcept {
    x += 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27U)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31U);
}
/// Uniform in (0, 1), never 0 or 1.
constexpr double uniform_of(std::uint64_t bits) noexcept {
    return (static_cast<double>(bits >> 12U) + 0.5) * 0x1p-52;
}

/// A sequence of numbers.
class Random {
 public:
    explicit Random(std::uint64_t seed, std::uint64_t purpose = 0) noexcept : state_(mixed(mixed(seed) ^ purpose)) {}
    std::uint64_t bits() noexcept { return mixed(state_++); }
    double uniform() noexcept { return uniform_of(bits()); }
    /// Of mean 1.
    double exponential() noexcept { return -std::log(uniform()); }
    /// 0 … n-1; n > 0.
    std::uint64_t below(std::uint64_t n) noexcept {
        return static_cast<std::uint64_t>(uniform() * static_cast<double>(n));
    }

 private:
    std::uint64_t state_;
};

/// How much slower than at its best a part is at a time. One-sided and autocorrelated, as measured rates of production
/// file systems are (48 series of a year: far more runs are 20 % low than 20 % high, and neighbors in time resemble
/// each other). The factor is 1 + s * E with E exponential of mean 1, s = cv / (1 - cv), so that the coefficient of
/// variation is cv; E comes from a Gaussian moving average over `memory` steps with weights rho^k, a function of time:
/// two times can be asked in any order.
class Weather {
 public:
    /// `cv` in [0, 1); `step` is the time after which the correlation has fallen to `rho`.
    Weather(std::uint64_t seed, std::uint64_t part, double cv, Time step = 1'000'000'000, double rho = 0.7) noexcept
        : seed_(mixed(mixed(seed) ^ part)), spread_(cv > 0 && cv < 1 ? cv / (1 - cv) : 0), step_(step), rho_(rho) {}

    bool calm() const noexcept { return spread_ <= 0; }
    /// At least 1.
    double factor(Time at) noexcept {
        if (spread_ <= 0) {
            return 1;
        }
        const std::int64_t cell = at / step_;
        if (cell != cell_) {
            cell_ = cell;
            factor_ = 1 - spread_ * std::log(0.5 * std::erfc(level(cell) * 0.70710678118654752));
        }
        return factor_;
    }

 private:
    /// Standard normal.
    double level(std::int64_t cell) const noexcept {
        constexpr int memory = 24;
        double sum = 0, squares = 0, weight = 1;
        for (int k = 0; k < memory; ++k) {
            sum += weight * normal(cell - k);
            squares += weight * weight;
            weight *= rho_;
        }
        return sum / std::sqrt(squares);
    }
    /// Sum of twelve uniforms less six: close enough to normal within three deviations, and exact arithmetic.
    double normal(std::int64_t cell) const noexcept {
        double sum = -6;
        std::uint64_t bits = mixed(seed_ ^ static_cast<std::uint64_t>(cell));
        for (int i = 0; i < 12; ++i) {
            bits = mixed(bits);
            sum += uniform_of(bits);
        }
        return sum;
    }

    std::uint64_t seed_;
    double spread_;
    Time step_;
    double rho_;
    std::int64_t cell_ = -1;
    double factor_ = 1;
};

}  // namespace sonde::simulate
