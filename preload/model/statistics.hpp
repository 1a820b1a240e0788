// SPDX-License-Identifier: Apache-2.0
// What is counted for each buffered file: what the program asked for, and what reached the storage.
#pragma once

#include "system/size_class.hpp"

#include <cstdint>

namespace sonde::buffer {

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
    std::uint64_t past = 0;  ///< calls, of those asked and below, that went past a sleeping buffer: seen no closer
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
};

}  // namespace sonde::buffer
