// SPDX-License-Identifier: Apache-2.0
// The C interface of the MPI module: a shared library that the engine loads at run time, so that the engine itself
// needs no MPI. One source (mpi_module.cpp, mpi_file.cpp) is built once per MPI flavor.
//
// Unless stated otherwise a function returns 0 or a negative errno, and last_error_message() has the message. The
// module waits by polling with pauses, because a blocking MPI call occupies a core. -ECANCELED means that the callback
// of set_wait_callback() ended a wait; MPI cannot be used in this process afterwards. One thread at a time calls MPI.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

#define SONDE_MPI_MODULE_VERSION 4u

struct SondeMpiFile;  // an open MPI_File with its datatypes

struct SondeMpiFileRequest {
    const char* path;
    int write, read, create, exclusive, truncate;
    int shared;      // 1: opened by all members, 0: by this rank alone (MPI_COMM_SELF)
    int collective;  // use the _all calls
    int view;        // 1: a file view addresses the data
    const char* const* hint_names;
    const char* const* hint_values;
    size_t hints;
    uint64_t size;         // size set after opening (MPI_File_set_size), 0 = unchanged
    uint64_t preallocate;  // bytes to preallocate (MPI_File_preallocate), 0 = none
    // view only: blocks of `block` bytes, one every `stride` bytes, the first at `first`
    uint64_t first, block, stride;
};

struct SondeMpiModule {
    uint32_t version;    // SONDE_MPI_MODULE_VERSION
    const char* flavor;  // "standard ABI" or "site": how it was built
    // MPI_Init_thread. `library` receives the name and version that MPI gives itself.
    int (*start)(int* rank, int* size, char* library, size_t library_size);
    int (*stop)(void);  // MPI_Finalize
    // Sets a callback for every wait from now on; its result 0 ends the wait with -ECANCELED.
    void (*set_wait_callback)(int (*keep_waiting)(void* context), void* context);
    // Over all ranks.
    int (*allgather)(const void* own_part, size_t bytes, void* all);
    int (*broadcast)(void* data, size_t bytes, int is_root);
    // The members open shared files and vote: the first `count` ranks, or all ranks before the first call. All ranks
    // call it.
    int (*set_members)(int count);
    int (*any)(int value);  // logical or over the members: 0, 1 or a negative errno
    // Over node leaders only. Only leaders call set_leaders(), with ascending ranks; a leader's number is its index in
    // that list.
    int (*set_leaders)(const int* ranks, int count);
    int (*leaders_maximum)(uint64_t* values, size_t count);  // element by element; also their barrier
    int (*leaders_broadcast)(void* data, size_t bytes);      // from leader 0
    int (*send)(int leader, const void* data, size_t bytes);
    int (*receive)(int leader, void* data, size_t bytes);
    // MPI-IO. Offsets are those of MPI_File_read_at: bytes of the file, or of the view when there is one.
    int (*file_open)(const struct SondeMpiFileRequest*, struct SondeMpiFile**);
    int64_t (*file_write)(struct SondeMpiFile*, const void*, size_t, uint64_t offset);  // bytes or -errno
    int64_t (*file_read)(struct SondeMpiFile*, void*, size_t, uint64_t offset);         // bytes or -errno
    int (*file_sync)(struct SondeMpiFile*);
    int (*file_close)(struct SondeMpiFile*);  // frees it in any case
    // Libraries of file formats, which the engine loads, take a communicator and hints. Of the request these functions
    // use path, shared and hints; `function` is the library's, and `result` receives what it returns. int
    // H5Pset_fapl_mpio(int64_t list, MPI_Comm, MPI_Info)
    int (*set_access_list)(void* function, int64_t list, const struct SondeMpiFileRequest*, int* result);
    // int ncmpi_create(MPI_Comm, const char* path, int mode, MPI_Info, int* id), and ncmpi_open
    int (*open_dataset)(void* function, int mode, int* id, const struct SondeMpiFileRequest*, int* result);
    // Address of MPI_Comm_dup: a library that calls another MPI finds another address.
    const void* (*implementation)(void);
    const char* (*last_error_message)(void);
};

/// The only symbol of the module.
const struct SondeMpiModule* sonde_mpi_module(void);
}
