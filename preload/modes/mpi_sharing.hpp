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

/// What is held of it, locked, goes to the kernel, and what was read is forgotten: others may have written since.
void drop_pages_read_before(File& file) noexcept;

/// These three for the shared files behind a handle of MPI. Buffering ends for good; the reason is for the report.
void release_shared(const void* handle, const char* reason) noexcept;
bool is_shared(const void* handle) noexcept;
/// MPI_File_sync. An error waits for who must be told.
void sync_shared(const void* handle) noexcept;

}  // namespace sonde::buffer
