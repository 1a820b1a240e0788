// SPDX-License-Identifier: Apache-2.0
// Loops of small records, as programs have them. The scattered ones go over the whole file, however large it is.
// Usage: loops write|rewrite|read|backward|random|random_write|fwrite|fread FILE RECORD_BYTES RECORDS
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/// The same records through a stream of the C library; 0 when all went well.
static int streamed(const char* name, char* data, size_t record, long count, int writes) {
    FILE* file = fopen(name, writes ? "w" : "r");
    long wrong = 0;
    for (long i = 0; i < count; ++i) {
        wrong += (writes ? fwrite(data, 1, record, file) : fread(data, 1, record, file)) != record;
    }
    return fclose(file) != 0 || wrong != 0;
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
    const int writes = strstr(mode, "write") != NULL;
    if (strcmp(mode, "fwrite") == 0 || strcmp(mode, "fread") == 0) {
        return streamed(argv[2], data, record, count, writes);
    }
    const int fresh = strcmp(mode, "write") == 0;
    const int fd = open(argv[2], (writes ? O_RDWR | O_CREAT : O_RDONLY) | (fresh ? O_TRUNC : 0), 0644);
    const unsigned long places = (unsigned long)lseek(fd, 0, SEEK_END) / record;
    lseek(fd, 0, SEEK_SET);
    for (long i = 0; i < count; ++i) {
        ssize_t got = 0;
        if (strncmp(mode, "random", 6) == 0) {
            state = state * 6364136223846793005UL + 1442695040888963407UL;
            const off_t at = (off_t)((state >> 24) % places * record);
            got = writes ? pwrite(fd, data, record, at) : pread(fd, data, record, at);
        } else if (strcmp(mode, "backward") == 0) {
            got = pread(fd, data, record, (count - 1 - i) * (off_t)record);
        } else {
            got = writes ? write(fd, data, record) : read(fd, data, record);
        }
        wrong += got != (ssize_t)record;
    }
    wrong += close(fd) != 0;
    return wrong != 0;
}
