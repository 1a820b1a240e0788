// SPDX-License-Identifier: Apache-2.0
// Files that the ranks of an MPI program share, each rank with its own part (mpiio=disjoint).
#pragma once

#include "model/file.hpp"

namespace sonde::buffer {

/// A file that MPI-IO has opened.
struct OpenedByMpi {
    int ranks;           ///< ranks that opened it together; 0: unknown
    const void* handle;  ///< MPI_File
};

/// Why it is left as it is, or nullptr.
const char* describe_mpi_objection(const OpenedByMpi& mpi, int flags, const settings::Rule& rule) noexcept;
/// The file, locked, is shared from now on.
void share_among_ranks(File& file, const OpenedByMpi& mpi) noexcept;
inline constexpr const char* why_opened_again = "opened by MPI-IO, and once more";

/// Flushes the file and drops its pages, because other processes may have written. Requires the lock of the file.
void drop_pages_read_before(File& file) noexcept;

/// Ends the buffering of the shared files behind an MPI handle until their last close; `reason` is for the report.
void release_shared(const void* handle, const char* reason) noexcept;
bool is_shared(const void* handle) noexcept;
/// Executes MPI_File_sync for the buffer. An error is stored for a later call to report.
void sync_shared(const void* handle) noexcept;

}  // namespace sonde::buffer
