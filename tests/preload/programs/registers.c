// SPDX-License-Identifier: Apache-2.0
// Two processes use one file at the same time. Each record of 8 bytes is a register with one writer: even ones belong
// to the first process, odd ones to the second. A register counts up. Every read must return a number between the last
// one that was written before the call began and the last one whose write began before the call ended: then there is a
// serial order that explains all reads. The second process opens the file for each of its turns, so a lease ends.
// Usage: registers SEED SCHEDULES STEPS (bare | same): whether the second process has the environment of the first.
// Prints the number of reads that were checked, and each read that no order explains.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

enum { RECORDS = 3000, RUN = 24, BYTES = RECORDS * 8 };

struct Shared {
    _Atomic uint64_t begun[RECORDS], ended[RECORDS];
    _Atomic long started, finished;  // schedules
    _Atomic long first_steps;        // of this schedule
    _Atomic long reads, wrong;
};
static struct Shared* shared;
static uint64_t state;

static uint32_t next(void) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (uint32_t)(state >> 16);
}
static void seed(uint64_t number) {
    state = number * 0x9E3779B97F4A7C15ULL + 1;
    next();
}
static void wait_for(_Atomic long* number, long least) {
    while (atomic_load(number) < least) {
        sched_yield();
    }
}
static void report_wrong(const char* what, uint32_t record, uint64_t got, uint64_t least, uint64_t most) {
    if (atomic_fetch_add(&shared->wrong, 1) < 20) {
        dprintf(2, "schedule %ld, %s of record %u: %lu, not %lu to %lu\n", atomic_load(&shared->started), what, record,
                (unsigned long)got, (unsigned long)least, (unsigned long)most);
    }
}

/// Writes one record of this process: those of `first` 0 are even, of 1 odd.
static void write_own(int fd, uint32_t record, uint32_t first) {
    record = record / 2 * 2 + first;
    const uint64_t value = atomic_load(&shared->begun[record]) + 1;
    atomic_store(&shared->begun[record], value);
    if (pwrite(fd, &value, 8, record * 8L) != 8) {
        report_wrong("write", record, 0, value, value);
    }
    atomic_store(&shared->ended[record], value);
}
static void check_values(const char* what, const uint64_t* got, uint32_t record, uint32_t count,
                         const uint64_t* least) {
    for (uint32_t i = 0; i < count; ++i) {
        const uint64_t most = atomic_load(&shared->begun[record + i]);
        if (got[i] < least[i] || got[i] > most) {
            report_wrong(what, record + i, got[i], least[i], most);
        }
    }
    atomic_fetch_add(&shared->reads, count);
}
static void note_least(uint64_t* least, uint32_t record, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
        least[i] = atomic_load(&shared->ended[record + i]);
    }
}
static void read_run(int fd, uint32_t record) {
    uint64_t least[RUN], got[RUN];
    const uint32_t count = record + RUN <= RECORDS ? RUN : RECORDS - record;
    note_least(least, record, count);
    if (pread(fd, got, count * 8, record * 8L) != (ssize_t)count * 8) {
        report_wrong("short read", record, 0, 0, 0);
        return;
    }
    check_values("read", got, record, count, least);
}
static void read_mapping(void) {
    static uint64_t least[RECORDS], got[RECORDS];
    note_least(least, 0, RECORDS);
    const int fd = open("data", O_RDONLY);
    void* data = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, fd, 0);
    if (data == MAP_FAILED) {
        report_wrong("mmap", 0, 0, 0, 0);
    } else {
        memcpy(got, data, BYTES);
        munmap(data, BYTES);
        check_values("mapping", got, 0, RECORDS, least);
    }
    close(fd);
}
static void read_locked(void) {
    const int fd = open("data", O_RDWR);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = BYTES};
    fcntl(fd, F_SETLKW, &lock);
    read_run(fd, next() % RECORDS);
    write_own(fd, next() % RECORDS, 1);
    close(fd);
}

/// The first process keeps the file open, and is leased most of the time.
static void run_first(long steps) {
    int fd = open("data", O_RDWR);
    uint32_t position = 0;
    for (long i = 0; i < steps; ++i) {
        const uint32_t kind = next() % 64;
        atomic_store(&shared->first_steps, i + 1);
        if (kind < 40) {
            write_own(fd, position = kind % 8 ? (position + 2) % RECORDS : next() % RECORDS, 0);
        } else if (kind < 60) {
            read_run(fd, next() % 2 ? next() % RECORDS : position);
        } else if (kind == 60) {
            fsync(fd);
        } else if (kind == 61) {
            struct stat status;
            if (fstat(fd, &status) != 0 || status.st_size != BYTES) {
                report_wrong("size", 0, (uint64_t)status.st_size, BYTES, BYTES);
            }
        } else if (kind == 62 && ftruncate(fd, BYTES) != 0) {
            report_wrong("ftruncate", 0, 0, 0, 0);
        } else if (kind == 63) {  // a new lease
            close(fd);
            fd = open("data", O_RDWR);
        }
    }
    close(fd);
}
/// A turn for each 20 steps of the first process, which does not wait.
static void run_second(long steps) {
    for (long i = 0; i < steps / 20; ++i) {
        wait_for(&shared->first_steps, i * 20 + next() % 20);
        const uint32_t kind = next() % 8;
        struct stat status;
        if (kind < 3) {
            const int fd = open("data", O_RDWR);
            read_run(fd, next() % RECORDS);
            for (uint32_t k = next() % 6; k > 0; --k) {
                write_own(fd, next() % RECORDS, 1);
            }
            read_run(fd, next() % RECORDS);
            close(fd);
        } else if (kind == 3) {
            read_mapping();
        } else if (kind == 4) {
            read_locked();
        } else if (kind == 5 && truncate("data", BYTES) != 0) {
            report_wrong("truncate", 0, 0, 0, 0);
        } else if (kind == 6 && (stat("data", &status) != 0 || status.st_size > BYTES)) {
            report_wrong("stat", 0, (uint64_t)status.st_size, 0, BYTES);
        }
    }
}

static void map_shared(const char* name) {
    // Not through the C library: the library must not see this file, which is memory of both processes.
    const int fd = (int)syscall(SYS_openat, AT_FDCWD, name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (syscall(SYS_ftruncate, fd, sizeof(struct Shared)) != 0) {
        exit(2);
    }
    shared = mmap(NULL, sizeof(struct Shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
}

int main(int argc, char** argv) {
    const int is_second = argc == 6;
    if (argc < 5) {
        return 2;
    }
    const long schedules = atol(argv[2]), steps = atol(argv[3]);
    map_shared("shared");
    pid_t child = 0;
    if (!is_second) {
        char* arguments[] = {argv[0], argv[1], argv[2], argv[3], argv[4], "second", NULL};
        char* nothing[] = {NULL};
        if (posix_spawn(&child, argv[0], NULL, NULL, arguments, strcmp(argv[4], "bare") == 0 ? nothing : environ) !=
            0) {
            return 2;
        }
    }
    for (long schedule = 1; schedule <= schedules; ++schedule) {
        seed(((strtoull(argv[1], NULL, 10) + (uint64_t)schedule) << 1) + (uint64_t)is_second);
        if (is_second) {
            wait_for(&shared->started, schedule);
            run_second(steps);
            atomic_store(&shared->finished, schedule);
            continue;
        }
        unlink("data");
        const int fd = open("data", O_RDWR | O_CREAT | O_EXCL, 0600);
        static const char zeros[BYTES];
        if (write(fd, zeros, BYTES) != BYTES || close(fd) != 0) {
            return 3;
        }
        memset(shared, 0, offsetof(struct Shared, started));
        atomic_store(&shared->first_steps, 0);
        atomic_store(&shared->started, schedule);
        run_first(steps);
        wait_for(&shared->finished, schedule);
    }
    if (is_second) {
        return 0;
    }
    int status = 0;
    waitpid(child, &status, 0);
    printf("%ld reads of %ld schedules, %ld wrong\n", atomic_load(&shared->reads), schedules,
           atomic_load(&shared->wrong));
    unlink("data");
    unlink("shared");
    return atomic_load(&shared->wrong) != 0 || WEXITSTATUS(status) != 0;
}
