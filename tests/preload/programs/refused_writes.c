// SPDX-License-Identifier: Apache-2.0
// Writes records until storage has refused three, makes room, goes on, and says of each call that failed or was short
// which it was. Usage: refused_writes HOW RECORD_BYTES RECORDS SYNC_EVERY [LEFT_BYTES]
// HOW: write, pwrite, writev, append or gaps (every second record). LEFT_BYTES: before the first record a file takes
// all free space but this. The exit code is 1 when a call failed.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

static char data[1 << 20];
static int fd, refused;

static int check(const char* call, long number, long got, long expected) {
    if (got == expected) {
        return 0;
    }
    printf("%s %ld: %ld %s\n", call, number, got, got < 0 ? strerror(errno) : "");
    refused += got < 0;
    return got < 0;
}

static long write_record(const char* how, long bytes, long number) {
    memset(data, 'a' + (int)(number % 26), (size_t)bytes);
    if (strcmp(how, "pwrite") == 0) {
        return pwrite(fd, data, (size_t)bytes, number * bytes);
    }
    if (strcmp(how, "gaps") == 0) {
        return pwrite(fd, data, (size_t)bytes, 2 * number * bytes);
    }
    if (strcmp(how, "writev") == 0) {
        const struct iovec parts[2] = {{data, (size_t)bytes / 3}, {data, (size_t)(bytes - bytes / 3)}};
        return writev(fd, parts, 2);
    }
    return write(fd, data, (size_t)bytes);
}

static long get_free_bytes(void) {
    struct statvfs space;
    return statvfs(".", &space) == 0 ? (long)(space.f_bavail * space.f_frsize) : 0;
}

/// Less at a time where all is refused: the file system needs blocks of its own too.
static void take_space(long bytes) {
    const int filler = open("filler", O_WRONLY | O_CREAT, 0644);
    for (long offset = 0, part = bytes; part >= 4096;) {
        if (posix_fallocate(filler, offset, part) == 0) {
            offset += part;
            bytes -= part;
            part = bytes < part ? bytes : part;
        } else {
            part /= 2;
        }
    }
    close(filler);
}

int main(int argc, char** argv) {
    const char* how = argv[1];
    const long bytes = atol(argv[2]), records = atol(argv[3]), sync_every = atol(argv[4]);
    fd = open("data", O_RDWR | O_CREAT | O_TRUNC | (strcmp(how, "append") == 0 ? O_APPEND : 0), 0644);
    if (argc > 5) {
        const long taken = get_free_bytes() - atol(argv[5]);
        for (long i = 0; i < 400; ++i) {
            check("early record", i, write_record("pwrite", 100, i), 100);
        }
        take_space(taken);
    }
    for (int half = 0; half < 2; ++half) {
        int in_half = 0;
        for (long i = 0; i < records && in_half < 3; ++i) {
            in_half += check("record", i, write_record(how, bytes, i), bytes);
            if (i % sync_every == sync_every - 1) {
                check("fsync", i, fsync(fd), 0);
            }
        }
        struct stat status;
        check("stat", half, fstat(fd, &status), 0);
        printf("%ld bytes, offset %ld\n", (long)status.st_size, (long)lseek(fd, 0, SEEK_CUR));
        check("truncate", half, ftruncate(fd, status.st_size / 2), 0);
        lseek(fd, status.st_size / 2, SEEK_SET);
    }
    check("last fsync", 0, fsync(fd), 0);
    check("close", 0, close(fd), 0);
    unlink("filler");
    return refused > 0;
}
