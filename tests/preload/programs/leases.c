// SPDX-License-Identifier: Apache-2.0
// Two processes work on one file in random turns. Each call ends before the next one begins, so that each read has one
// right answer: what a run without the library prints. Usage: leases SEED SCHEDULES STEPS (bare | same), where the last
// word says whether the second process has the environment of the first.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

enum { SLOTS = 2, MOST = 6000 };

struct Step {
    uint32_t kind, slot, offset, bytes, flags, sign;
};
static int slots[SLOTS] = {-1, -1};

static uint64_t hash_of(const void* data, long bytes) {
    uint64_t hash = 0xCBF29CE484222325ULL;
    for (long i = 0; i < bytes; ++i) {
        hash = (hash ^ ((const unsigned char*)data)[i]) * 0x100000001B3ULL;
    }
    return hash;
}
static uint64_t answer(long result, const void* data) {
    return result < 0 ? (uint64_t)-errno : (uint64_t)result * 31 + hash_of(data, data != NULL ? result : 0);
}

static uint64_t write_some(int fd, const struct Step* step) {
    static char text[MOST];
    memset(text, 'a' + (int)step->sign % 26, sizeof(text));
    uint64_t sum = 0;
    for (uint32_t i = 0; i < 1 + step->sign % 12; ++i) {
        sum += answer(step->flags % 2 ? write(fd, text, step->bytes)
                                      : pwrite(fd, text, step->bytes, step->offset + i * step->bytes), NULL);
    }
    return sum;
}
static uint64_t read_some(int fd, const struct Step* step) {
    static char text[MOST];
    uint64_t sum = 0;
    for (uint32_t i = 0; i < 1 + step->sign % 12; ++i) {
        const ssize_t got = step->flags % 2 ? read(fd, text, step->bytes)
                                            : pread(fd, text, step->bytes, step->offset + i * step->bytes);
        sum = sum * 7 + answer(got, text);
    }
    return sum;
}
static uint64_t read_map(int fd) {
    struct stat status;
    if (fstat(fd, &status) != 0 || status.st_size == 0) {
        return 1;
    }
    void* data = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_SHARED, fd, 0);
    const uint64_t hash = data == MAP_FAILED ? 2 : hash_of(data, status.st_size);
    munmap(data, (size_t)status.st_size);
    return hash;
}
static uint64_t with_lock(int fd, const struct Step* step) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = step->offset, .l_len = 10};
    uint64_t sum = answer(fcntl(fd, F_SETLK, &lock), NULL);
    sum += read_some(fd, step);
    lock.l_type = F_UNLCK;
    return sum + answer(fcntl(fd, F_SETLK, &lock), NULL);
}

static uint64_t execute(const struct Step* step) {
    static const int access[] = {O_RDWR, O_RDWR, O_RDONLY, O_WRONLY, O_RDWR | O_APPEND, O_RDWR | O_TRUNC};
    int* slot = &slots[step->slot % SLOTS];
    uint64_t result = 0;
    switch (step->kind % 16) {
        case 0: case 1: case 2: case 3: return write_some(*slot, step);
        case 4: case 5: case 6: return read_some(*slot, step);
        case 7: case 8:
            close(*slot);
            *slot = open("data", access[step->flags % 6] | O_CREAT, 0644);
            return (uint64_t)(*slot >= 0);
        case 9:
            result = answer(close(*slot), NULL);
            *slot = -1;
            return result;
        case 10: return answer(truncate("data", step->offset), NULL);
        case 11: return answer(ftruncate(*slot, step->offset), NULL);
        case 12: {
            const int fd = open("data", O_RDONLY);
            result = read_map(fd) * 3 + (uint64_t)lseek(fd, 0, SEEK_END);
            close(fd);
            return result;
        }
        case 13: return with_lock(*slot, step);
        case 14: return answer(fsync(*slot), NULL) + (uint64_t)lseek(*slot, 0, SEEK_CUR);
        default: {
            const int fd = open("data", O_RDWR);
            result = read_some(fd, step) + write_some(fd, step);
            close(fd);
            return result;
        }
    }
}

static uint64_t state;
static uint32_t next(void) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (uint32_t)(state >> 16);
}

static int serve(void) {
    struct Step step;
    while (read(0, &step, sizeof(step)) == sizeof(step)) {
        const uint64_t result = execute(&step);
        if (write(1, &result, sizeof(result)) != sizeof(result)) {
            return 1;
        }
    }
    return 0;
}

int main(int argc, char** argv) {
    if (argc == 2) {
        return serve();
    }
    int to[2], from[2];
    if (argc != 5 || pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0) {
        return 2;
    }
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, to[0], 0);
    posix_spawn_file_actions_adddup2(&actions, from[1], 1);
    char* arguments[] = {argv[0], "serve", NULL};
    char* nothing[] = {NULL};
    pid_t child;
    if (posix_spawn(&child, argv[0], &actions, NULL, arguments, strcmp(argv[4], "bare") == 0 ? nothing : environ) != 0) {
        return 2;
    }
    const long schedules = atol(argv[2]), steps = atol(argv[3]);
    for (long schedule = 0; schedule < schedules; ++schedule) {
        state = (strtoull(argv[1], NULL, 10) + (uint64_t)schedule) * 0x9E3779B97F4A7C15ULL + 1;
        uint64_t sum = 0;
        for (long i = 0; i < steps; ++i) {
            const int other = next() % 3 == 0;
            const struct Step step = {next(), next(), next() % 60000, 1 + next() % (next() % 4 ? 300 : MOST - 1), next(), next()};
            uint64_t result = 0;
            if (!other) {
                result = execute(&step);
            } else if (write(to[1], &step, sizeof(step)) != sizeof(step) ||
                       read(from[0], &result, sizeof(result)) != sizeof(result)) {
                return 3;
            }
            sum = sum * 0x100000001B3ULL + result;
            if (getenv("STEPS") != NULL) {
                printf("%ld %ld %s %u %016llx\n", schedule, i, other ? "other" : "own", step.kind % 16, (unsigned long long)result);
            }
        }
        printf("%ld %016llx\n", schedule, (unsigned long long)sum);
    }
    close(to[1]);
    int status = 0;
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
}
