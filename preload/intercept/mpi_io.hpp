// SPDX-License-Identifier: Apache-2.0
// Files that MPI-IO opens: which of them one rank has for itself, and what all ranks do together with the others.
#pragma once

namespace sonde::intercept {

/// A descriptor opened inside MPI_File_open and its kin: what becomes of it is decided when that returns, because only
/// then one can ask how many ranks share it. False outside.
bool is_left_to_mpi_io(int fd, int flags, const char* path) noexcept;

}  // namespace sonde::intercept
