// SPDX-License-Identifier: Apache-2.0
// Detects streams of accesses, predicts the next ones, and decides whether buffering pays. Functions require the lock
// of the file unless stated otherwise.
#pragma once

#include "model/file.hpp"

namespace sonde::buffer {

struct Move {
    bool local = false;  ///< part of a stream, or next to a cached page: full pages pay
    bool backward = false;
    bool dense = false;       ///< part of a stream whose calls lie close together, or overlap
    bool passes = false;      ///< leaves a whole page behind, on storage where reading it again would cost little
    bool straight = false;    ///< too large to gain from a copy in between, on storage as fast as memory
    std::uint64_t reach = 0;  ///< bytes worth loading from here on, in the direction of the stream
    std::uint64_t fresh = 0;  ///< bytes of this call that the one before did not touch
    std::uint64_t run = 0;    ///< bytes of the stream so far, this call included
};
Move follow_stream(Stream& stream, std::int64_t begin, std::int64_t end, std::uint32_t page_size) noexcept;
void queue_read_ahead(File& file, const Stream& stream, const Move& move, std::int64_t begin,
                      std::int64_t end) noexcept;
/// Determines the access pattern of which a call on [begin, end) through this description is part.
Move classify_access(File& file, Stream& stream, std::int64_t begin, std::int64_t end) noexcept;
}  // namespace sonde::buffer
