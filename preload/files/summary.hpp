// SPDX-License-Identifier: Apache-2.0
// Writes one line for each process that used files with many calls, for statistics of a site.
#pragma once

#include "model/file.hpp"

namespace sonde::buffer {

/// Adds the statistics of a file to the summary. Requires the lock of the file.
void add_to_summary(const File& file) noexcept;
/// At the end of the process: appends the line to the file that SONDE_IOBUF_SUMMARY names, or sends it to the system
/// log. Only on the first rank of an MPI program.
void write_summary() noexcept;
/// In the child of a fork.
void clear_summary() noexcept;

}  // namespace sonde::buffer
