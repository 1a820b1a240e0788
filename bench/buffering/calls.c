// SPDX-License-Identifier: Apache-2.0
// What a preloaded library adds to one call: the call as the program makes it and the C library's own, of which the
// library in front knows nothing, in turns within one process, so that both meet the same machine.
// Usage: calls read|write|pread|pwrite|random_read|random_write|lseek|out|fwrite FILE RECORD_BYTES ROUNDS
// `out` and `fwrite` hand each batch to the kernel before its time ends, so that no thread works on after that.
// Prints: median ns of a call as the program makes it, of the bare call, median of the differences of neighbors, ns of
// processor time (all threads) of a call as the program makes it, of a bare one. Built with -fno-builtin.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static int calls_of_a_batch = 256;
typedef ssize_t (*ReadAt)(int, void*, size_t, off_t);
typedef ssize_t (*WriteAt)(int, const void*, size_t, off_t);

/// One side of the comparison.
struct Side {
    int (*open)(const char*, int, ...);
    int (*sync)(int);
    ssize_t (*read)(int, void*, size_t);
    ssize_t (*write)(int, const void*, size_t);
    ReadAt pread;
    WriteAt pwrite;
    off_t (*lseek)(int, off_t, int);
    FILE* stream;
    int fd;
    off_t at;
    unsigned long state;
};

static const char* mode;
static size_t record;
static off_t file_bytes;
static char* data;
static long wrong;

static double seconds_of(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static off_t somewhere(struct Side* side) {
    side->state = side->state * 6364136223846793005UL + 1442695040888963407UL;
    return (off_t)((side->state >> 24) % (unsigned long)(file_bytes / (off_t)record) * record);
}

static void turn_over(struct Side* side) {
    if (side->at + (off_t)((unsigned)calls_of_a_batch * record) > file_bytes) {
        side->at = 0;
        if (side->stream != NULL) {
            wrong += fseek(side->stream, 0, SEEK_SET) != 0;
        } else {
            wrong += side->lseek(side->fd, 0, SEEK_SET) != 0;
        }
    }
}

/// ns of a call, over one batch. The ways are spelled out: a switch between calls would be measured too.
static double batch(struct Side* side, double* processor_s) {
    turn_over(side);
    const size_t n = record;
    const double used = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
    const double began = seconds_of(CLOCK_MONOTONIC);
    if (strcmp(mode, "read") == 0) {
        for (int i = 0; i < calls_of_a_batch; ++i) wrong += side->read(side->fd, data, n) != (ssize_t)n;
    } else if (strcmp(mode, "write") == 0) {
        for (int i = 0; i < calls_of_a_batch; ++i) wrong += side->write(side->fd, data, n) != (ssize_t)n;
    } else if (strcmp(mode, "pread") == 0) {
        for (int i = 0; i < calls_of_a_batch; ++i)
            wrong += side->pread(side->fd, data, n, side->at + i * (off_t)n) != (ssize_t)n;
    } else if (strcmp(mode, "pwrite") == 0) {
        for (int i = 0; i < calls_of_a_batch; ++i)
            wrong += side->pwrite(side->fd, data, n, side->at + i * (off_t)n) != (ssize_t)n;
    } else if (strcmp(mode, "random_read") == 0) {
        for (int i = 0; i < calls_of_a_batch; ++i)
            wrong += side->pread(side->fd, data, n, somewhere(side)) != (ssize_t)n;
    } else if (strcmp(mode, "random_write") == 0) {
        for (int i = 0; i < calls_of_a_batch; ++i)
            wrong += side->pwrite(side->fd, data, n, somewhere(side)) != (ssize_t)n;
    } else if (strcmp(mode, "lseek") == 0) {
        for (int i = 0; i < calls_of_a_batch; ++i) wrong += side->lseek(side->fd, i, SEEK_SET) != i;
    } else if (side->stream != NULL) {
        for (int i = 0; i < calls_of_a_batch; ++i) wrong += fwrite(data, 1, n, side->stream) != n;
        wrong += fflush(side->stream) != 0;
    } else {
        for (int i = 0; i < calls_of_a_batch; ++i) wrong += side->write(side->fd, data, n) != (ssize_t)n;
        wrong += side->sync(side->fd) != 0;
    }
    const double ended = seconds_of(CLOCK_MONOTONIC);
    *processor_s += seconds_of(CLOCK_PROCESS_CPUTIME_ID) - used;
    side->at += (off_t)((unsigned)calls_of_a_batch * record);
    return (ended - began) * 1e9 / calls_of_a_batch;
}

static int by_size(const void* a, const void* b) {
    const double one = *(const double*)a, other = *(const double*)b;
    return (one > other) - (one < other);
}

static double median(double* values, int count) {
    qsort(values, (size_t)count, sizeof(double), by_size);
    return values[count / 2];
}

static struct Side bare_side(void) {
    void* libc = dlopen("libc.so.6", RTLD_LAZY);
    struct Side side = {0};
    *(void**)&side.open = dlsym(libc, "open");
    *(void**)&side.read = dlsym(libc, "read");
    *(void**)&side.write = dlsym(libc, "write");
    *(void**)&side.pread = dlsym(libc, "pread");
    *(void**)&side.pwrite = dlsym(libc, "pwrite");
    *(void**)&side.lseek = dlsym(libc, "lseek");
    *(void**)&side.sync = dlsym(libc, "fdatasync");
    return side;
}

int main(int argc, char** argv) {
    if (argc != 5) {
        return 2;
    }
    mode = argv[1];
    record = strtoul(argv[3], NULL, 10);
    const int rounds = atoi(argv[4]);
    struct Side bare = bare_side();
    struct Side usual = {.open = open, .read = read, .write = write, .pread = pread, .pwrite = pwrite, .lseek = lseek};
    usual.sync = fdatasync;
    if (strcmp(mode, "out") == 0 || strcmp(mode, "fwrite") == 0) {
        calls_of_a_batch = 4096;  // several pages of the buffer
    }
    file_bytes = (off_t)((64UL << 20) / record * record);
    data = malloc(1 << 20);
    memset(data, 'x', 1 << 20);
    bare.fd = bare.open(argv[2], O_RDWR | O_CREAT, 0644);
    for (off_t at = 0; at < file_bytes; at += 1 << 20) {
        wrong += bare.pwrite(bare.fd, data, 1 << 20, at) != 1 << 20;
    }
    const int reads = strstr(mode, "read") != NULL;
    usual.fd = usual.open(argv[2], reads ? O_RDONLY : O_RDWR);
    wrong += usual.fd < 0;
    if (strcmp(mode, "fwrite") == 0) {
        usual.stream = fopen(argv[2], "r+");
    }
    // Half the file apart: who comes second at a place finds it in the processor's cache.
    bare.at = bare.lseek(bare.fd, file_bytes / 2 / (off_t)record * (off_t)record, SEEK_SET);
    bare.state = 88172645463325252UL;
    usual.state = 362436069362436069UL;
    double* with = malloc(sizeof(double) * (size_t)rounds);
    double* without = malloc(sizeof(double) * (size_t)rounds);
    double* added = malloc(sizeof(double) * (size_t)rounds);
    double with_s = 0, without_s = 0, ignored = 0;
    for (int i = 0; i < 16; ++i) {  // memory is touched, threads are started, guesses are made
        batch(&usual, &ignored);
        batch(&bare, &ignored);
    }
    for (int i = 0; i < rounds; ++i) {
        with[i] = batch(&usual, &with_s);
        without[i] = batch(&bare, &without_s);
        added[i] = with[i] - without[i];
    }
    const double calls = (double)rounds * calls_of_a_batch;
    printf("%.2f %.2f ", median(with, rounds), median(without, rounds));
    printf("%.2f %.2f %.2f\n", median(added, rounds), with_s * 1e9 / calls, without_s * 1e9 / calls);
    return wrong != 0;
}
