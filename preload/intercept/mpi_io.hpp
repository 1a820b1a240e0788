// SPDX-License-Identifier: Apache-2.0
// Registers the files that MPI-IO opens, and releases shared ones before collective calls.
#pragma once

namespace sonde::intercept {

/// A descriptor opened inside MPI_File_open and its kin: what becomes of it is decided when that returns, because only
/// then one can ask how many ranks share it. False outside.
bool is_left_to_mpi_io(int fd, int flags, const char* path) noexcept;

}  // namespace sonde::intercept
