// SPDX-License-Identifier: Apache-2.0
// Loops of small records, as programs have them. Prints nanoseconds a record, opening and closing included.
// Usage: loops write|rewrite|read|backward|random|random_write|stdio FILE RECORD_BYTES RECORDS
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

int main(int argc, char** argv) {
    if (argc != 5) {
        return 2;
    }
    const char* mode = argv[1];
    const size_t record = strtoul(argv[3], NULL, 10);
    const long count = atol(argv[4]);
    char* data = malloc(record);
    memset(data, 'x', record);
    unsigned long state = 88172645463325252UL;
    long wrong = 0;
    const double begin = now();
    if (strcmp(mode, "stdio") == 0) {
        FILE* stream = fopen(argv[2], "w");
        for (long i = 0; i < count; ++i) {
            wrong += fwrite(data, 1, record, stream) != record;
        }
        wrong += fclose(stream) != 0;
    } else {
        const int writes = strstr(mode, "write") != NULL;
        const int fresh = strcmp(mode, "write") == 0;
        const int fd = open(argv[2], (writes ? O_RDWR | O_CREAT : O_RDONLY) | (fresh ? O_TRUNC : 0), 0644);
        for (long i = 0; i < count; ++i) {
            ssize_t got = 0;
            if (strncmp(mode, "random", 6) == 0) {
                state = state * 6364136223846793005UL + 1442695040888963407UL;
                const off_t at = (off_t)((state >> 24) % (unsigned long)count * record);
                got = writes ? pwrite(fd, data, record, at) : pread(fd, data, record, at);
            } else if (strcmp(mode, "backward") == 0) {
                got = pread(fd, data, record, (count - 1 - i) * (off_t)record);
            } else {
                got = writes ? write(fd, data, record) : read(fd, data, record);
            }
            wrong += got != (ssize_t)record;
        }
        wrong += close(fd) != 0;
    }
    printf("%.2f\n", (now() - begin) / (double)count);
    return wrong != 0;
}
