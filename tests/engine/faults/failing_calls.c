// SPDX-License-Identifier: Apache-2.0
// Loaded before libc: system calls on the data files of a run fail when told to, as on a broken storage.
//   FAIL_CALL   open, read, write, fsync or close
//   FAIL_AFTER  how many such calls of a process succeed first
//   FAIL_ERRNO  the error number; SHORT moves half of what was asked instead; HANG takes ten minutes, deaf to signals
//   FAIL_PATH   part of the path of the files that are meant
//   FAIL_MARK   a file that is made when a call begins to hang
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static atomic_long calls;

static int meant(const char* path) {
    const char* part = getenv("FAIL_PATH");
    return part != NULL && strstr(path, part) != NULL;
}

static int meant_descriptor(int fd) {
    char link[64];
    char path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0) {
        return 0;
    }
    path[length] = '\0';
    return meant(path);
}

// 0: go on; -1: fail with errno set; 1: move half.
static int verdict(const char* call) {
    const char* wanted = getenv("FAIL_CALL");
    const char* code = getenv("FAIL_ERRNO");
    const char* after = getenv("FAIL_AFTER");
    if (wanted == NULL || code == NULL || strcmp(wanted, call) != 0 ||
        atomic_fetch_add(&calls, 1) < (after != NULL ? atol(after) : 0)) {
        return 0;
    }
    if (strcmp(code, "SHORT") == 0) {
        return 1;
    }
    if (strcmp(code, "HANG") == 0) {
        const char* mark = getenv("FAIL_MARK");
        if (mark != NULL) {
            fclose(fopen(mark, "w"));
        }
        const time_t end = time(NULL) + 600;
        while (time(NULL) < end) {
            usleep(10000);
        }
        return 0;
    }
    errno = atoi(code);
    return -1;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int openat_any(int directory, const char* path, int flags, mode_t mode) {
    if (meant(path) && verdict("open") < 0) {
        return -1;
    }
    return REAL(openat)(directory, path, flags, mode);
}
static int open_any(const char* path, int flags, mode_t mode) { return openat_any(AT_FDCWD, path, flags, mode); }

int open(const char* path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    return open_any(path, flags, mode);
}
int open64(const char* path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    return open_any(path, flags, mode);
}

int openat(int directory, const char* path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    return openat_any(directory, path, flags, mode);
}
int openat64(int directory, const char* path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    return openat_any(directory, path, flags, mode);
}

static ssize_t write_any(int fd, const void* data, size_t size, off_t at) {
    const int answer = meant_descriptor(fd) ? verdict("write") : 0;
    return answer < 0 ? -1 : REAL(pwrite)(fd, data, answer > 0 && size > 1 ? size / 2 : size, at);
}
static ssize_t read_any(int fd, void* data, size_t size, off_t at) {
    const int answer = meant_descriptor(fd) ? verdict("read") : 0;
    return answer < 0 ? -1 : REAL(pread)(fd, data, answer > 0 && size > 1 ? size / 2 : size, at);
}
ssize_t pwrite(int fd, const void* data, size_t size, off_t at) { return write_any(fd, data, size, at); }
ssize_t pwrite64(int fd, const void* data, size_t size, off64_t at) { return write_any(fd, data, size, at); }
ssize_t pread(int fd, void* data, size_t size, off_t at) { return read_any(fd, data, size, at); }
ssize_t pread64(int fd, void* data, size_t size, off64_t at) { return read_any(fd, data, size, at); }

int fsync(int fd) { return meant_descriptor(fd) && verdict("fsync") < 0 ? -1 : REAL(fsync)(fd); }

int close(int fd) {
    if (meant_descriptor(fd) && verdict("close") < 0) {
        const int error = errno;
        REAL(close)(fd);
        errno = error;
        return -1;
    }
    return REAL(close)(fd);
}
