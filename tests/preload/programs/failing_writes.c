// SPDX-License-Identifier: Apache-2.0
// A library to be preloaded behind the one under test: from the n-th write to a file called "data" on, storage answers
// with the error of FAIL_ERRNO (a number), FAIL_COUNT times.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fails(int fd) {
    static long seen;
    char name[64], path[4096] = "";
    snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
    if (readlink(name, path, sizeof(path) - 1) < 5 || strstr(path, "/data") == NULL) {
        return 0;
    }
    long first = atol(getenv("FAIL_FIRST")), count = atol(getenv("FAIL_COUNT"));
    ++seen;
    if (seen >= first && seen < first + count) {
        errno = atoi(getenv("FAIL_ERRNO"));
        return 1;
    }
    return 0;
}

ssize_t write(int fd, const void* data, size_t bytes) {
    ssize_t (*real)(int, const void*, size_t) = (ssize_t(*)(int, const void*, size_t))dlsym(RTLD_NEXT, "write");
    return fails(fd) ? -1 : real(fd, data, bytes);
}

ssize_t pwrite64(int fd, const void* data, size_t bytes, off_t at) {
    ssize_t (*real)(int, const void*, size_t, off_t) = (ssize_t(*)(int, const void*, size_t, off_t))dlsym(RTLD_NEXT, "pwrite64");
    return fails(fd) ? -1 : real(fd, data, bytes, at);
}
