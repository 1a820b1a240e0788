// SPDX-License-Identifier: Apache-2.0
// Storage that says yes and does something else: the write of one block of one file ($LIE_PATH, $LIE_OFFSET) changes a
// byte ($LIE_KIND = flip), is lost (drop) or lands right behind its place (misplace). The call succeeds.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

typedef ssize_t (*Write)(int, const void*, size_t, off64_t);

static int is_chosen(int file, off64_t offset) {
    const char* path = getenv("LIE_PATH");
    const char* at = getenv("LIE_OFFSET");
    if (path == NULL || at == NULL || offset != atoll(at)) {
        return 0;
    }
    char link[64];
    char found[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    const ssize_t length = readlink(link, found, sizeof found - 1);
    if (length < 0) {
        return 0;
    }
    found[length] = '\0';
    return strcmp(found, path) == 0;
}

static ssize_t lie(Write write_there, int file, const void* data, size_t size, off64_t offset) {
    const char* kind = getenv("LIE_KIND");
    if (strcmp(kind, "drop") == 0) {
        return (ssize_t)size;
    }
    if (strcmp(kind, "misplace") == 0) {
        return write_there(file, data, size, offset + (off64_t)size);
    }
    char* changed = malloc(size);
    if (changed == NULL) {
        abort();
    }
    memcpy(changed, data, size);
    changed[size / 3] ^= 1;
    const ssize_t written = write_there(file, changed, size, offset);
    free(changed);
    return written;
}

ssize_t pwrite64(int file, const void* data, size_t size, off64_t offset) {
    static Write real;
    if (real == NULL) {
        *(void**)&real = dlsym(RTLD_NEXT, "pwrite64");
    }
    return is_chosen(file, offset) ? lie(real, file, data, size, offset) : real(file, data, size, offset);
}

ssize_t pwrite(int file, const void* data, size_t size, off_t offset) {
    return pwrite64(file, data, size, offset);
}
