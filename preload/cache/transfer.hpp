// SPDX-License-Identifier: Apache-2.0
// Transfers data between program, pages and storage. Functions require the lock of the file unless stated otherwise.
#pragma once

#include "cache/readahead.hpp"

namespace sonde::buffer {

/// Reads `bytes` at `offset`, page by page. Returns the transferred bytes, also if an error ended the transfer early,
/// or a negative errno. `hit` becomes false when data came from storage.
ssize_t read_through_pages(File& file, const AccessForecast& forecast, char* to, std::size_t bytes, std::int64_t offset,
                           bool& hit) noexcept;
ssize_t write_through_pages(File& file, const AccessForecast& forecast, const char* from, std::size_t bytes,
                            std::int64_t offset, bool& hit) noexcept;

}  // namespace sonde::buffer
