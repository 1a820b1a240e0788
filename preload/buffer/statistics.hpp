// SPDX-License-Identifier: Apache-2.0
// What is counted for each buffered file: what the program asked for, and what reached the storage.
#pragma once

#include <cstdint>

namespace sonde::buffer {

/// Size classes as Darshan has them: up to 100, 1K, 10K, 100K, 1M, 4M, 10M, 100M, 1G bytes, and more.
inline unsigned size_class(std::uint64_t bytes) noexcept {
    constexpr std::uint64_t limits[] = {100,       1024,       10240,       102400,   1U << 20U,
                                        4U << 20U, 10U << 20U, 100U << 20U, 1U << 30U};
    unsigned at = 0;
    while (at < 9 && bytes > limits[at]) {
        ++at;
    }
    return at;
}

struct Direction {
    std::uint64_t asked = 0;  ///< calls of the program
    std::uint64_t asked_bytes = 0;
    std::uint64_t below = 0;  ///< calls that reached the storage
    std::uint64_t below_bytes = 0;
    std::uint64_t below_ns = 0;     ///< time in them, by whichever thread
    std::uint64_t hits = 0;         ///< calls that needed no call below
    std::uint64_t consecutive = 0;  ///< calls that began where the one before ended
    std::uint64_t unaligned = 0;    ///< calls whose offset is no multiple of 4 KiB
    std::uint64_t sizes[10] = {};
};

struct Statistics {
    Direction read;
    Direction write;
    std::uint64_t seeks = 0;
    std::uint64_t syncs = 0;
    std::uint64_t wait_ns = 0;  ///< time the program's threads waited for storage or for our workers
    std::uint64_t ahead_started = 0;
    std::uint64_t ahead_used = 0;
    std::uint64_t ahead_unused = 0;
    std::uint64_t behind_started = 0;
    std::uint64_t given_up = 0;  ///< times all was flushed and dropped because a call had to see the file as it is
    std::uint64_t dormant = 0;   ///< calls that went straight through because buffering did not pay
    std::uint64_t late = 0;      ///< writes after the library had ended
};

}  // namespace sonde::buffer
