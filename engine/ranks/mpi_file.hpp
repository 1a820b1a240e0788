// SPDX-License-Identifier: Apache-2.0
// MPI-IO of the MPI module: the functions behind the file_… entries of SondeMpiModule.
#pragma once

#include "ranks/mpi_interface.hpp"

namespace sonde::ranks::mpi {

int file_open(const SondeMpiFileRequest* request, SondeMpiFile** file);
std::int64_t file_write(SondeMpiFile* file, const void* data, std::size_t bytes, std::uint64_t offset);
std::int64_t file_read(SondeMpiFile* file, void* data, std::size_t bytes, std::uint64_t offset);
int file_sync(SondeMpiFile* file);
int file_close(SondeMpiFile* file);
int set_access_list(void* function, std::int64_t list, const SondeMpiFileRequest* request, int* result);
int open_dataset(void* function, int mode, int* id, const SondeMpiFileRequest* request, int* result);
const void* implementation();

}  // namespace sonde::ranks::mpi
