// SPDX-License-Identifier: Apache-2.0
// The C interface of the MPI module: a shared library that the engine loads at run time, so that the engine itself
// needs no MPI. One source (mpi_module.cpp) is built once per MPI flavour. Every function returns 0 or a negative errno;
// last_error() has the sentence.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

#define SONDE_MPI_MODULE_VERSION 1u

struct SondeMpiFile;  // an open MPI_File with its datatypes

struct SondeMpiFileRequest {
    const char* path;
    int write, read, create, exclusive, truncate;
    int shared;  // 1: opened by all ranks together (MPI_COMM_WORLD), 0: by this rank alone (MPI_COMM_SELF)
    int collective;  // use the _all calls
    int view;  // 1: a file view addresses the data
    const char* const* hint_names;
    const char* const* hint_values;
    size_t hints;
    uint64_t preallocate;  // bytes, 0 = none
    // view only: blocks of `block` bytes, one every `stride` bytes, the first at `offset`
    uint64_t block, stride, offset;
};

struct SondeMpiModule {
    uint32_t version;  // SONDE_MPI_MODULE_VERSION
    const char* flavour;  // "standard ABI" or the name the site's MPI gives itself
    int (*start)(int* rank, int* size, char* library, size_t library_size);  // MPI_Init_thread
    int (*stop)(void);  // MPI_Finalize
    // Over all ranks; they wait by polling with short sleeps, because blocking MPI calls burn a core each.
    int (*allgather)(const void* mine, size_t bytes, void* all);
    int (*broadcast)(void* data, size_t bytes, int root);
    int (*barrier)(void);
    // Over node leaders only, after set_leaders() (called by leaders only).
    int (*set_leaders)(const int* ranks, int count);
    int (*leaders_barrier)(void);
    int (*leaders_broadcast)(void* data, size_t bytes);
    int (*leaders_maximum)(uint64_t* value);
    int (*send)(int leader, const void* data, size_t bytes);
    int (*receive)(int leader, void* data, size_t bytes);
    // MPI-IO
    int (*file_open)(const struct SondeMpiFileRequest*, struct SondeMpiFile**);
    int64_t (*file_write)(struct SondeMpiFile*, const void*, size_t, uint64_t offset);
    int64_t (*file_read)(struct SondeMpiFile*, void*, size_t, uint64_t offset);
    int (*file_sync)(struct SondeMpiFile*);
    int (*file_close)(struct SondeMpiFile*);
    int (*any)(int mine);  // logical or over all ranks (collective stop decisions)
    const char* (*last_error)(void);
};

/// The only symbol of the module.
const struct SondeMpiModule* sonde_mpi_module(void);
}
