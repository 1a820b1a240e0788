// SPDX-License-Identifier: Apache-2.0
// What the small programs of this folder share. Each scenario works in an empty folder and prints only what must be the
// same with and without a library in between. Usage: PROGRAM SCENARIO, or PROGRAM --list
#pragma once
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { RECORD = 100 };

static int open_new(const char* path) { return open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644); }
/// Record `number` as text.
static void fill(char* record, char sign, int number) {
    snprintf(record, RECORD + 1, "%c%098d\n", sign, number);
}
static void put(int fd, int count, char sign) {
    char record[RECORD + 1];
    for (int i = 0; i < count; ++i) {
        fill(record, sign, i);
        if (write(fd, record, RECORD) != RECORD) {
            printf("write: %s\n", strerror(errno));
            return;
        }
    }
}
static long size_of(const char* path) {
    struct stat got;
    return stat(path, &got) == 0 ? (long)got.st_size : -1;
}
/// As somebody else sees it: by system calls that no library in between can know of.
static long bare_size(const char* path) {
    struct stat got;
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(SYS_stat), "D"(path), "S"(&got) : "rcx", "r11", "memory");
    return result == 0 ? (long)got.st_size : -1;
}
static long bare_call(long number, long a, long b, long c) {
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return result;
}
/// The same by opening it, which makes who holds data back hand it over first.
static long opened_size(const char* path) {
    const long fd = bare_call(SYS_open, (long)path, O_RDONLY, 0);
    const long size = bare_call(SYS_lseek, fd, 0, SEEK_END);
    bare_call(SYS_close, fd, 0, 0);
    return size;
}
static int wait_for(pid_t child) {
    int status = -1;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

struct Scenario {
    const char* name;
    void (*run)(void);
};
#define SCENARIOS(...)                                                                          \
    static const struct Scenario scenarios[] = {__VA_ARGS__};                                   \
    int main(int argc, char** argv) {                                                           \
        if (argc == 3) {                                                                        \
            return continued(argv[1], argv[2]);                                                 \
        }                                                                                       \
        for (unsigned i = 0; i < sizeof(scenarios) / sizeof(*scenarios); ++i) {                 \
            if (argc == 2 && strcmp(argv[1], "--list") == 0) {                                  \
                puts(scenarios[i].name);                                                        \
            } else if (argc == 2 && strcmp(argv[1], scenarios[i].name) == 0) {                  \
                setvbuf(stdout, NULL, _IOLBF, 0);                                               \
                scenarios[i].run();                                                             \
                return 0;                                                                       \
            }                                                                                   \
        }                                                                                       \
        return argc == 2 && strcmp(argv[1], "--list") == 0 ? 0 : 2;                             \
    }
#define ONE(name) {#name, name}
