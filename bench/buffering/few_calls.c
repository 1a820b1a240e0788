// SPDX-License-Identifier: Apache-2.0
// Programs to which a buffer can give nothing: files that are open for a few small calls, and scattered ones.
// Usage: few_calls fill|read|read_access|write|random FILE FILES CALLS ROUNDS
// FILE is the beginning of the names of FILES files. A call has 100 bytes. `read`, `write`: opens each file, makes
// CALLS calls and closes it, ROUNDS times. `read_access`: access() before each call. `random`: CALLS scattered reads of
// the first file, which is open all the time. `fill`: makes the files, of CALLS calls each.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { record = 100 };
static char data[record];
static char name[4096];

static const char* name_of(const char* beginning, long number) {
    snprintf(name, sizeof(name), "%s%ld", beginning, number);
    return name;
}

static int read_at_random(const char* file, long calls) {
    const int fd = open(file, O_RDONLY);
    const unsigned long records = (unsigned long)lseek(fd, 0, SEEK_END) / record;
    unsigned long state = 88172645463325252UL;
    long wrong = 0;
    for (long i = 0; i < calls; ++i) {
        state = state * 6364136223846793005UL + 1442695040888963407UL;
        wrong += pread(fd, data, record, (off_t)((state >> 24) % records * record)) != record;
    }
    return close(fd) != 0 || wrong != 0;
}

int main(int argc, char** argv) {
    if (argc != 6) {
        return 2;
    }
    const char* mode = argv[1];
    const long files = atol(argv[3]), calls = atol(argv[4]), rounds = atol(argv[5]);
    const int reads = strncmp(mode, "read", 4) == 0;
    const int asks = strcmp(mode, "read_access") == 0;
    if (strcmp(mode, "random") == 0) {
        return read_at_random(name_of(argv[2], 0), calls);
    }
    long wrong = 0;
    for (long round = 0; round < rounds; ++round) {
        for (long i = 0; i < files; ++i) {
            const int fd = open(name_of(argv[2], i), reads ? O_RDONLY : O_WRONLY | O_CREAT | O_TRUNC, 0644);
            for (long call = 0; call < calls; ++call) {
                wrong += asks && access(name, R_OK) != 0;
                wrong += (reads ? read(fd, data, record) : write(fd, data, record)) != record;
            }
            wrong += close(fd) != 0;
        }
    }
    return wrong != 0;
}
