// SPDX-License-Identifier: Apache-2.0
// A cuFile for tests, over the memory of fake_cuda.c. It is as strict as the real one: the driver must be open in this
// process, the file registered, and the address lie in the memory of a GPU. FAKE_CUFILE_FAIL: the function that fails.
// FAKE_CUFILE_CORRUPT: a byte of each transfer changes. FAKE_CUFILE_LOG: file that gets a line for each file that is
// given back: bytes read and written, and how many buffers are registered.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#define GPU_BIT (1ULL << 62)
enum {
    not_initialized = 5001,
    io_not_supported = 5008,
    pointer_invalid = 5012,
    already_open = 5026,
    not_registered = 5027
};

typedef struct {
    int cufile, cuda;
} Error;

typedef struct {
    int type;
    union {
        int descriptor;
        void* handle;
    };
    const void* operations;
} Description;

typedef struct {
    int descriptor;
    unsigned long long read, written;
} File;

static pid_t opened_in;
static int buffers;

static int fails(const char* name) {
    const char* failing = getenv("FAKE_CUFILE_FAIL");
    return failing != NULL && strcmp(failing, name) == 0;
}

Error cuFileDriverOpen(void) {
    const int was_open = opened_in == getpid();
    opened_in = getpid();
    return (Error){fails("cuFileDriverOpen") ? not_initialized : was_open ? already_open : 0, 0};
}

Error cuFileHandleRegister(void** handle, Description* description) {
    if (opened_in != getpid()) {
        return (Error){not_initialized, 0};
    }
    if (fails("cuFileHandleRegister") || description->type != 1 || description->operations != NULL) {
        return (Error){io_not_supported, 0};
    }
    File* file = calloc(1, sizeof *file);
    file->descriptor = description->descriptor;
    *handle = file;
    return (Error){0, 0};
}

void cuFileHandleDeregister(void* handle) {
    File* file = handle;
    const char* path = getenv("FAKE_CUFILE_LOG");
    FILE* log = path == NULL ? NULL : fopen(path, "a");
    if (log != NULL) {
        fprintf(log, "%llu %llu %d\n", file->read, file->written, __atomic_load_n(&buffers, __ATOMIC_SEQ_CST));
        fclose(log);
    }
    free(file);
}

Error cuFileBufRegister(const void* buffer, size_t bytes, int flags) {
    if (fails("cuFileBufRegister") || bytes == 0 || flags != 0 || ((size_t)buffer & GPU_BIT) == 0) {
        return (Error){pointer_invalid, 0};
    }
    __atomic_add_fetch(&buffers, 1, __ATOMIC_SEQ_CST);
    return (Error){0, 0};
}

Error cuFileBufDeregister(const void* buffer) {
    (void)buffer;
    __atomic_sub_fetch(&buffers, 1, __ATOMIC_SEQ_CST);
    return (Error){0, 0};
}

static ssize_t check(const char* name, const void* handle, const void* buffer) {
    if (fails("errno")) {
        errno = ENOSPC;
        return -1;
    }
    return fails(name)                       ? -io_not_supported
           : handle == NULL                  ? -not_registered
           : ((size_t)buffer & GPU_BIT) == 0 ? -pointer_invalid
                                             : 0;
}

ssize_t cuFileRead(void* handle, void* buffer, size_t bytes, off_t offset, off_t into) {
    const ssize_t problem = check("cuFileRead", handle, buffer);
    if (problem != 0) {
        return problem;
    }
    File* file = handle;
    char* memory = (char*)((size_t)buffer ^ GPU_BIT) + into;
    const ssize_t moved = pread(file->descriptor, memory, bytes, offset);
    if (moved > 0) {
        file->read += (unsigned long long)moved;
        memory[moved / 2] ^= getenv("FAKE_CUFILE_CORRUPT") != NULL;
    }
    return moved;
}

ssize_t cuFileWrite(void* handle, const void* buffer, size_t bytes, off_t offset, off_t from) {
    const ssize_t problem = check("cuFileWrite", handle, buffer);
    if (problem != 0) {
        return problem;
    }
    File* file = handle;
    char* memory = (char*)((size_t)buffer ^ GPU_BIT) + from;
    memory[bytes / 2] ^= getenv("FAKE_CUFILE_CORRUPT") != NULL;
    const ssize_t moved = pwrite(file->descriptor, memory, bytes, offset);
    file->written += moved > 0 ? (unsigned long long)moved : 0;
    return moved;
}
