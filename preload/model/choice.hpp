// SPDX-License-Identifier: Apache-2.0
// Settings from what a program does: the first calls on a file are made as they are and counted, then its pages are
// chosen, or it is left alone. The rules are those by which `sonde iobuf --from TRACE` chooses from a whole trace
// (lab/sonde/advise/buffers.py); a test holds the two together.
#pragma once

#include "system/frequent_values.hpp"

#include <cstdint>

namespace sonde::buffer {

/// Reads and writes that are counted before settings are chosen. Calls, not seconds: the same program gets the same
/// settings each time. A file with fewer costs too little to be worth a page.
inline constexpr std::uint32_t watched_calls = 200;

/// Size of the smallest page that can be chosen, in bytes, and the largest number of pages.
inline constexpr std::uint32_t min_page_bytes = 1U << 20U;
inline constexpr std::uint32_t max_pages_chosen = 16;

// Storage that answers faster than this answers from memory: then a copy in between costs about what a call costs for
// 8 KiB, pieces should stay in the processor's cache, and a thread that reads ahead only takes time from the program.
inline constexpr std::uint64_t memory_bytes_per_us = 1500;  ///< bytes per microsecond
inline constexpr std::int64_t min_bypass_bytes_in_memory = 8U << 10U;

/// Access counts of one file over all its descriptors, from which its settings are chosen.
struct AccessWatch {
    struct WatchedDirection {
        std::uint32_t calls = 0;
        std::uint32_t consecutive = 0;  ///< began where the call before ended
        std::uint64_t bytes = 0;
        std::uint64_t new_bytes = 0;  ///< without those that overlap with the call before
        std::uint64_t ns = 0;         ///< in the calls
    };
    WatchedDirection read, write;
    std::uint32_t switches = 0;  ///< from reading to writing or back
    std::int64_t last_begin = 0, last_end = 0;
    bool last_writes = false;
    system::FrequentValues strides;  ///< distances of the beginnings of two calls

    void add(bool writes, std::int64_t begin, std::int64_t bytes, std::uint64_t ns) noexcept;
    std::uint32_t calls() const noexcept { return read.calls + write.calls; }
};

struct BufferChoice {
    bool is_profitable = false;
    std::uint32_t page_size = 0, pages = 0, prefetch = 0;
    const char* reason = nullptr;  ///< one clause, for the report
};

/// `block` is what the file system calls its best transfer, in bytes.
BufferChoice choose_settings(const AccessWatch& watch, std::uint64_t block) noexcept;

}  // namespace sonde::buffer
