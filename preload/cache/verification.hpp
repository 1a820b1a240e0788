// SPDX-License-Identifier: Apache-2.0
// Compares buffered data with the data on storage (SONDE_IOBUF=verify).
#pragma once

#include "model/file.hpp"

namespace sonde::buffer {

/// Compares bytes that a read got from a clean page, or that a write has handed to storage, with what storage returns
/// through `fd`. A difference is counted and reported on standard error and in the system log. Files that cannot be
/// read through `fd` are not compared.
void verify_bytes(const File& file, int fd, const char* bytes, std::size_t count, std::int64_t offset) noexcept;

}  // namespace sonde::buffer
