// SPDX-License-Identifier: Apache-2.0
// Size classes in which the sizes of calls are counted.
#pragma once

#include <cstdint>

namespace sonde::system {

/// Darshan's size classes: up to 100, 1K, 10K, 100K, 1M, 4M, 10M, 100M, 1G bytes, and more.
inline unsigned find_transfer_size_class(std::uint64_t bytes) noexcept {
    constexpr std::uint64_t limits[] = {100,       1024,       10240,       102400,    1U << 20U,
                                        4U << 20U, 10U << 20U, 100U << 20U, 1U << 30U, ~0ULL};
    // The class of the largest number with this many bits; a smaller number is in that class or in the one before.
    constexpr unsigned char classes[] = {0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 3, 3,
                                         3, 4, 4, 4, 4, 5, 5, 6, 7, 7, 7, 8, 8, 8, 8};
    const auto bits = static_cast<unsigned>(64 - __builtin_clzll(bytes | 1));
    const unsigned upper = bits < sizeof(classes) ? classes[bits] : 9;
    const unsigned lower = upper > 0 ? upper - 1 : 0;
    return bytes <= limits[lower] ? lower : upper;
}

}  // namespace sonde::system
