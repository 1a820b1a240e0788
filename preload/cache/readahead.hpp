// SPDX-License-Identifier: Apache-2.0
// Detects streams of accesses, predicts the next ones, and decides whether buffering is profitable. Functions require
// the lock of the file unless stated otherwise.
#pragma once

#include "model/file.hpp"

namespace sonde::buffer {

struct AccessForecast {
    bool is_page_worthwhile = false;  ///< part of a stream, or next to a cached page: full pages pay
    bool is_backward = false;
    bool is_dense = false;  ///< part of a stream whose calls lie close together, or overlap
    bool leaves_page_behind =
        false;                    ///< leaves a whole page behind, on storage where reading it again would cost little
    bool bypasses_pages = false;  ///< too large to gain from a copy in between, on storage as fast as memory
    std::uint64_t bytes_to_load = 0;  ///< bytes worth loading from here on, in the direction of the stream
    std::uint64_t new_bytes = 0;      ///< bytes of this call that the one before did not touch
    std::uint64_t stream_bytes = 0;   ///< bytes of the stream so far, this call included
};
AccessForecast follow_stream(Stream& stream, std::int64_t begin, std::int64_t end, std::uint32_t page_size) noexcept;
void queue_read_ahead(File& file, const Stream& stream, const AccessForecast& forecast, std::int64_t begin,
                      std::int64_t end) noexcept;
/// Determines the access pattern of which a call on [begin, end) through this description is part.
AccessForecast classify_access(File& file, Stream& stream, std::int64_t begin, std::int64_t end) noexcept;
}  // namespace sonde::buffer
