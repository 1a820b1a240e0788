// SPDX-License-Identifier: Apache-2.0
// One file, every way to change and to see it, and a copy of what it must hold in memory: each byte that is read, and the
// size after each step, are compared. Stops at the first difference with exit code 1 and the last steps on standard error.
// Usage: exerciser FILE SEED STEPS LARGEST_FILE LARGEST_STEP [maps]   (`maps`: also through memory maps)
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LOG = 40 };
static uint64_t state;
static unsigned char *truth, *seen, *made;
static long size, most, largest;
static const char* path;
static int fd, elsewhere;
static char history[LOG][96];
static long step;

static uint64_t below(uint64_t limit) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return limit == 0 ? 0 : (state * 0x2545F4914F6CDD1DULL >> 20) % limit;
}

static void fail(const char* what) {
    fprintf(stderr, "step %ld: %s (%s)\n", step, what, strerror(errno));
    for (long i = step - LOG + 1; i <= step; ++i) {
        if (i >= 0) {
            fprintf(stderr, "%s\n", history[i % LOG]);
        }
    }
    exit(1);
}

static void expect(int good, const char* what) {
    if (!good) {
        fail(what);
    }
}

static void note(const char* what, long at, long bytes) {
    snprintf(history[step % LOG], sizeof(history[0]), "%ld %s %ld +%ld, size %ld", step, what, at, bytes, size);
}

/// What was not written is zero: also between the old end and a write further on.
static void grow(long end) {
    size = end > size ? end : size;
}

static void fill(long bytes) {
    const uint64_t first = below(UINT64_MAX);
    for (long i = 0; i < bytes; ++i) {
        made[i] = (unsigned char)(first + (uint64_t)i * 7 + (uint64_t)(i >> 8));
    }
}

static void compare(const unsigned char* got, long at, long bytes, const char* what) {
    if (memcmp(got, truth + at, (size_t)bytes) != 0) {
        for (long i = 0; i < bytes; ++i) {
            if (got[i] != truth[at + i]) {
                fprintf(stderr, "offset %ld: %02x instead of %02x\n", at + i, got[i], truth[at + i]);
                break;
            }
        }
        fail(what);
    }
}

static void do_read(long at, long bytes) {
    const long there = at < size ? (bytes < size - at ? bytes : size - at) : 0;
    note("read", at, bytes);
    if (below(2) == 0) {
        expect(pread(fd, seen, (size_t)bytes, at) == there, "length of a read");
    } else {
        expect(lseek(fd, at, SEEK_SET) == at, "seek");
        expect(read(fd, seen, (size_t)bytes) == there, "length of a read");
        expect(lseek(fd, 0, SEEK_CUR) == at + there, "offset after a read");
    }
    compare(seen, at, there, "data that was read");
}

static void do_write(long at, long bytes) {
    note("write", at, bytes);
    fill(bytes);
    if (below(2) == 0) {
        expect(pwrite(fd, made, (size_t)bytes, at) == bytes, "length of a write");
    } else {
        expect(lseek(fd, at, SEEK_SET) == at, "seek");
        expect(write(fd, made, (size_t)bytes) == bytes, "length of a write");
    }
    memcpy(truth + at, made, (size_t)bytes);
    grow(at + bytes);
}

static void do_map(long at, long bytes, int writes) {
    note(writes ? "map for writing" : "map for reading", at, bytes);
    const long page = sysconf(_SC_PAGESIZE);
    const long begin = at / page * page;
    if (writes) {
        if (at + bytes > size) {
            expect(ftruncate(fd, at + bytes) == 0, "truncate before a map");
            grow(at + bytes);
        }
    } else if (at >= size) {
        return;
    } else {
        bytes = bytes < size - at ? bytes : size - at;
    }
    const size_t length = (size_t)(at + bytes - begin);
    unsigned char* map = mmap(NULL, length, writes ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd, begin);
    expect(map != MAP_FAILED, "mmap");
    if (writes) {
        fill(bytes);
        memcpy(map + (at - begin), made, (size_t)bytes);
        memcpy(truth + at, made, (size_t)bytes);
        expect(msync(map, length, MS_SYNC) == 0, "msync");
    } else {
        compare(map + (at - begin), at, bytes, "data of a map");
    }
    expect(munmap(map, length) == 0, "munmap");
}

static void do_truncate(long at) {
    note("truncate", at, 0);
    expect((below(3) == 0 ? truncate(path, at) : ftruncate(fd, at)) == 0, "truncate");
    if (at < size) {
        memset(truth + at, 0, (size_t)(size - at));
    }
    size = at;
}

static void do_allocate(long at, long bytes) {
    const int punches = below(2) == 0;
    note(punches ? "punch" : "allocate", at, bytes);
    const int got = punches ? fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, bytes)
                            : posix_fallocate(fd, at, bytes);
    if (got != 0) {
        expect(punches && errno == EOPNOTSUPP, "fallocate");
    } else if (punches) {
        memset(truth + at, 0, (size_t)(at < size ? (bytes < size - at ? bytes : size - at) : 0));
    } else {
        grow(at + bytes);
    }
}

static void do_send(long at, long bytes) {
    note("sendfile", at, bytes);
    const long there = at < size ? (bytes < size - at ? bytes : size - at) : 0;
    off_t from = at;
    expect(lseek(elsewhere, 0, SEEK_SET) == 0 && sendfile(elsewhere, fd, &from, (size_t)bytes) == there, "sendfile");
    expect(pread(elsewhere, seen, (size_t)there, 0) == there, "read of what was sent");
    compare(seen, at, there, "data that was sent");
}

static void do_copy(long from, long to, long bytes) {
    bytes = from < size ? (bytes < size - from ? bytes : size - from) : 0;
    bytes = bytes > labs(from - to) ? labs(from - to) : bytes;
    note("copy", to, bytes);
    off_t in = from, out = to;
    if (bytes == 0) {
        return;
    }
    const ssize_t got = copy_file_range(fd, &in, fd, &out, (size_t)bytes, 0);
    if (got < 0 && (errno == EOPNOTSUPP || errno == EXDEV || errno == ENOSYS)) {
        return;
    }
    expect(got == bytes, "copy_file_range");
    memcpy(truth + to, truth + from, (size_t)bytes);
    grow(to + bytes);
}

static void reopen(void) {
    note("close and open", 0, 0);
    expect(close(fd) == 0, "close");
    fd = open(path, O_RDWR);
    expect(fd >= 0, "open");
}

static void one_step(int maps) {
    const long at = (long)below((uint64_t)most);
    long bytes = 1 + (long)below((uint64_t)largest);
    bytes = bytes < most - at ? bytes : most - at;
    const unsigned kind = (unsigned)below(100);
    if (kind < 35) {
        do_read(at, bytes);
    } else if (kind < 70) {
        do_write(at, bytes);
    } else if (kind < 76) {
        do_truncate(at);
    } else if (kind < 80) {
        do_allocate(at, bytes);
    } else if (kind < 84) {
        do_send(at, bytes);
    } else if (kind < 88) {
        const long to = (long)below((uint64_t)most);
        do_copy(at, to, bytes < most - to ? bytes : most - to);
    } else if (kind < 90) {
        note("sync", 0, 0);
        expect((below(2) == 0 ? fsync(fd) : fdatasync(fd)) == 0, "fsync");
    } else if (kind < 92) {
        note("advice", at, bytes);
        expect(posix_fadvise(fd, at, bytes, (int)below(6)) == 0, "posix_fadvise");
    } else if (kind < 94 || !maps) {
        reopen();
    } else {
        do_map(at, bytes, below(2) == 0);
    }
    struct stat now;
    expect((below(2) == 0 ? fstat(fd, &now) : stat(path, &now)) == 0 && now.st_size == size, "size");
}

int main(int argc, char** argv) {
    if (argc < 6) {
        return 2;
    }
    path = argv[1];
    state = strtoull(argv[2], NULL, 10) * 0x9E3779B97F4A7C15ULL + 1;
    const long steps = atol(argv[3]);
    most = atol(argv[4]);
    largest = atol(argv[5]);
    truth = calloc(1, (size_t)most);
    seen = malloc((size_t)most);
    made = malloc((size_t)most);
    elsewhere = memfd_create("sent", 0);
    fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
    expect(fd >= 0 && elsewhere >= 0, "open");
    for (step = 0; step < steps; ++step) {
        one_step(argc > 6);
    }
    do_read(0, most);
    expect(close(fd) == 0, "close");
    printf("%ld steps\n", steps);
    return 0;
}
