/* SPDX-License-Identifier: Apache-2.0
 * The FFIO calls of Cray and SGI for C and C++ programs: ffopen, ffopens, ffread, ffwrite, ffseek, ffflush, ffclose.
 *
 * They are calls of POSIX on ordinary descriptors, so that the preload library buffers them like any other: compile
 * with `cc $(sonde iobuf --cflags) program.c`, then start the program by `sonde iobuf --ffio 'assign ...' -- program`.
 *
 * Allocate ahead: with SONDE_FFIO_AHEAD=BYTES in the environment a file that grows has that much space allocated
 * before it is needed, in large pieces. Its size is that of its data all the time; ffclose gives back what is unused.
 */
#ifndef SONDE_FFIO_H
#define SONDE_FFIO_H

#ifndef _GNU_SOURCE
#error "ffio.h needs _GNU_SOURCE before the first header: compile with the flags that sonde iobuf --cflags prints."
#endif

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The status that some calls return besides their result. */
struct ffsw {
    int sw_flag;
    int sw_error;
    ssize_t sw_count;
};

#define SONDE_FFIO_FILES 1024

/* Where the space allocated for a descriptor ends; 0: nothing was allocated. One table for all sources of a program. */
__attribute__((weak)) off_t sonde_ffio_allocated[SONDE_FFIO_FILES];

static inline off_t sonde_ffio_ahead(void) {
    const char* text = getenv("SONDE_FFIO_AHEAD");
    return text != NULL ? (off_t)strtoll(text, NULL, 10) : 0;
}

/* Allocates space for a write that ends at `end` and for what follows. A file system without space or without this call
 * is no error: the write itself meets it. */
static inline void sonde_ffio_allocate(int fd, off_t end) {
    const off_t ahead = sonde_ffio_ahead();
    if (ahead <= 0 || fd < 0 || fd >= SONDE_FFIO_FILES || end <= sonde_ffio_allocated[fd]) {
        return;
    }
    const int error = errno;
    if (fallocate(fd, FALLOC_FL_KEEP_SIZE, end, ahead) == 0) {
        sonde_ffio_allocated[fd] = end + ahead;
    }
    errno = error;
}

static inline void sonde_ffio_status(struct ffsw* status, ssize_t result) {
    if (status != NULL) {
        status->sw_flag = 1;
        status->sw_error = result < 0 ? errno : 0;
        status->sw_count = result < 0 ? 0 : result;
    }
}

/* The buffer of the file follows from the settings of the preload library, not from `layers`. */
static inline int ffopens(const char* name, int flags, mode_t mode, long bits, int blocks, struct ffsw* status,
                          const char* layers) {
    (void)bits, (void)blocks, (void)layers;
    const int fd = open(name, flags, mode);
    if (fd >= 0 && fd < SONDE_FFIO_FILES) {
        sonde_ffio_allocated[fd] = 0;
    }
    sonde_ffio_status(status, fd);
    return fd;
}

static inline int ffopen(const char* name, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    const mode_t mode = (flags & O_CREAT) != 0 ? (mode_t)va_arg(arguments, int) : 0;
    va_end(arguments);
    return ffopens(name, flags, mode, 0, 0, NULL, NULL);
}

static inline ssize_t ffread(int fd, void* data, size_t bytes) {
    return read(fd, data, bytes);
}

static inline ssize_t ffwrite(int fd, const void* data, size_t bytes) {
    if (sonde_ffio_ahead() > 0) {
        const off_t offset = (fcntl(fd, F_GETFL) & O_APPEND) != 0 ? lseek(fd, 0, SEEK_END) : lseek(fd, 0, SEEK_CUR);
        if (offset >= 0) {
            sonde_ffio_allocate(fd, offset + (off_t)bytes);
        }
    }
    return write(fd, data, bytes);
}

static inline off_t ffseek(int fd, off_t offset, int whence) {
    return lseek(fd, offset, whence);
}

static inline int ffflush(int fd, struct ffsw* status) {
    const int result = fsync(fd);
    sonde_ffio_status(status, result);
    return result;
}

static inline int ffclose(int fd) {
    struct stat about;
    if (fd >= 0 && fd < SONDE_FFIO_FILES && sonde_ffio_allocated[fd] > 0) {
        sonde_ffio_allocated[fd] = 0;
        /* what lies behind the end of the file goes back; the data stays */
        if (fstat(fd, &about) == 0 && ftruncate(fd, about.st_size) != 0) {
            const int error = errno;
            close(fd);
            errno = error;
            return -1;
        }
    }
    return close(fd);
}

/* Marks of records: no layer here has any. */
static inline int ffweof(int fd) {
    (void)fd;
    errno = ENOTSUP;
    return -1;
}

static inline int ffbksp(int fd) {
    (void)fd;
    errno = ENOTSUP;
    return -1;
}

#ifdef __cplusplus
}
#endif

#endif
