// SPDX-License-Identifier: Apache-2.0
// Statistics of each buffered file: calls of the program, and calls to storage.
#pragma once

#include "system/transfer_size_class.hpp"

#include <cstdint>

namespace sonde::buffer {

/// Reads or writes of one file.
struct TransferCounts {
    std::uint64_t calls = 0;  ///< of the program
    std::uint64_t bytes = 0;
    std::uint64_t storage_calls = 0;
    std::uint64_t storage_bytes = 0;
    std::uint64_t storage_ns = 0;   ///< time in storage calls, by any thread
    std::uint64_t hits = 0;         ///< calls that needed no storage call
    std::uint64_t consecutive = 0;  ///< calls that began where the one before ended
    std::uint64_t unaligned = 0;    ///< calls whose offset is no multiple of 4 KiB
    std::uint64_t sizes[10] = {};
    std::uint64_t bypassed = 0;  ///< calls on a suspended file, which count in calls and bytes only
};

struct Statistics {
    TransferCounts read;
    TransferCounts write;
    std::uint64_t seeks = 0;
    std::uint64_t syncs = 0;
    std::uint64_t wait_ns = 0;  ///< time the program's threads waited for storage or for our workers
    std::uint64_t read_aheads_started = 0;
    std::uint64_t read_aheads_used = 0;
    std::uint64_t read_aheads_unused = 0;
    std::uint64_t write_behinds_started = 0;
    std::uint64_t interruptions = 0;  ///< calls that needed everything flushed and dropped first
    std::uint64_t suspensions = 0;    ///< times buffering was suspended because it gained nothing
};

}  // namespace sonde::buffer
