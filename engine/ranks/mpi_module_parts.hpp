// SPDX-License-Identifier: Apache-2.0
// The functions of the module's parts that mpi_module.cpp puts into the table.
#pragma once

#include "ranks/mpi_module.hpp"

namespace sonde::ranks::mpi {

void set_watch(int (*go_on)(void*), void* context);

int file_open(const SondeMpiFileRequest* request, SondeMpiFile** file);
std::int64_t file_write(SondeMpiFile* file, const void* data, std::size_t bytes, std::uint64_t offset);
std::int64_t file_read(SondeMpiFile* file, void* data, std::size_t bytes, std::uint64_t offset);
int file_sync(SondeMpiFile* file);
int file_close(SondeMpiFile* file);

}  // namespace sonde::ranks::mpi
