// SPDX-License-Identifier: Apache-2.0
// What makes life hard for a library in between: what these programs share. Each scenario prints only what must be the
// same with and without one. Usage: PROGRAM SCENARIO (in an empty folder), or PROGRAM --list
#pragma once
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static char record[1000];

static int open_new(const char* path) { return open(path, O_RDWR | O_CREAT | O_TRUNC, 0644); }
static void put(int fd, int count, char sign) {
    memset(record, sign, sizeof(record));
    record[sizeof(record) - 1] = '\n';
    for (int i = 0; i < count; ++i) {
        if (write(fd, record, sizeof(record)) != (ssize_t)sizeof(record)) {
            printf("write: %s\n", strerror(errno));
        }
    }
}
static long size_of(const char* path) {
    struct stat got;
    return stat(path, &got) == 0 ? (long)got.st_size : -1;
}

struct Scenario {
    const char* name;
    void (*run)(void);
};
#define ONE(name) {#name, name}
/// With two words: what a scenario that replaced itself by this program goes on with.
#define SCENARIOS(continued, ...)                                                               \
    static const struct Scenario scenarios[] = {__VA_ARGS__};                                   \
    int main(int argc, char** argv) {                                                           \
        setvbuf(stdout, NULL, _IOLBF, 0);                                                       \
        if (argc == 3) {                                                                        \
            return continued(argv[1], argv[2]);                                                 \
        }                                                                                       \
        for (unsigned i = 0; i < sizeof(scenarios) / sizeof(*scenarios); ++i) {                 \
            if (argc == 2 && strcmp(argv[1], "--list") == 0) {                                  \
                printf("%s\n", scenarios[i].name);                                              \
            } else if (argc == 2 && strcmp(argv[1], scenarios[i].name) == 0) {                  \
                scenarios[i].run();                                                             \
                return 0;                                                                       \
            }                                                                                   \
        }                                                                                       \
        return argc == 2 && strcmp(argv[1], "--list") == 0 ? 0 : 2;                             \
    }
static int nothing_continues(const char* what, const char* word) {
    (void)what;
    (void)word;
    return 2;
}
