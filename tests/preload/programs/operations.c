// SPDX-License-Identifier: Apache-2.0
// A random but repeatable list of I/O calls on a few files. Every result (return value, errno, offset, size, a sum of
// the data read) goes to standard output, so that two runs, with and without a library in between, can be compared.
// Usage: operations FOLDER SEED COUNT [LARGEST]
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
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FILES = 3, SLOTS = 6 };
static uint64_t state;
static long largest = 20000;
static char buffer[1 << 20], pattern[1 << 20];
static int slot[SLOTS];
static long step;

static uint64_t next(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}
static long below(long limit) { return limit > 0 ? (long)(next() % (uint64_t)limit) : 0; }
static const char* name(long i) {
    static char names[4][16];
    static int at;
    char* made = names[at = (at + 1) % 4];
    snprintf(made, 16, "file%ld", i % FILES);
    return made;
}
static uint64_t sum(const char* data, long bytes) {
    uint64_t hash = 0xCBF29CE484222325ULL;
    for (long i = 0; i < bytes; ++i) {
        hash = (hash ^ (unsigned char)data[i]) * 0x100000001B3ULL;
    }
    return hash;
}
static void say(const char* what, long result) {
    printf("%ld %s = %ld%s%s\n", step, what, result, result < 0 ? " " : "", result < 0 ? strerror(errno) : "");
}
static void fill(long bytes) {
    for (long i = 0; i < bytes; i += 8) {
        uint64_t value = next();
        memcpy(pattern + i, &value, 8);
    }
}
static long length(void) {  // mostly small, sometimes larger than a page of the buffer
    long kind = below(10);
    return kind < 6 ? below(600) : kind < 9 ? below(largest / 4) : below(largest);
}
static long place(void) { return below(10) < 8 ? below(largest * 6) : below(largest * 14); }

static void open_one(int at) {
    static const int kinds[] = {O_RDWR, O_RDWR, O_RDWR, O_RDWR, O_RDONLY, O_WRONLY, O_WRONLY};
    static const int more[] = {0, 0, 0, 0, 0, 0, 0, O_TRUNC, O_CLOEXEC, O_CLOEXEC, O_APPEND, O_SYNC, O_EXCL};
    int flags = kinds[below(7)] | O_CREAT | more[below(13)];
    const char* path = name(below(FILES));
    if (slot[at] >= 0) {
        say("close", close(slot[at]));
    }
    slot[at] = below(4) == 0 ? openat(AT_FDCWD, path, flags, 0644) : open(path, flags, 0644);
    say("open", slot[at]);
}
static void transfer(int fd) {
    long bytes = length();
    long at = place();
    struct iovec parts[3] = {{buffer, bytes / 3}, {buffer + bytes / 3, bytes / 4}, {buffer + bytes / 3 + bytes / 4, 100}};
    struct iovec sent[3] = {{pattern, bytes / 3}, {pattern + bytes / 3, bytes / 4}, {pattern + bytes / 3 + bytes / 4, 100}};
    long got = 0;
    fill(bytes + 100);
    memset(buffer, 0, bytes + 100);
    switch (below(14)) {
        case 0: case 1: case 2: got = read(fd, buffer, bytes); break;
        case 3: case 4: got = pread(fd, buffer, bytes, at); break;
        case 5: got = readv(fd, parts, 3); break;
        case 6: got = preadv(fd, parts, 3, at); break;
        case 7: got = preadv2(fd, parts, 3, below(2) ? -1 : at, 0); break;
        case 8: case 9: got = write(fd, pattern, bytes); break;
        case 10: case 11: got = pwrite(fd, pattern, bytes, at); break;
        case 12: got = writev(fd, sent, 3); break;
        default: got = pwritev2(fd, sent, 3, below(2) ? -1 : at, 0); break;
    }
    say("transfer", got);
    printf("  %lx\n", (unsigned long)sum(buffer, bytes + 100));
}
static void stream(int fd) {  // small records one after the other, forward or backward
    long record = 1 + below(900);
    long at = place();
    int backward = below(3) == 0;
    int writes = below(2);
    long total = 0;
    for (int i = 0; i < 60; ++i) {
        long here = backward ? at + (60 - i) * record : at + i * record;
        fill(record);
        total += writes ? pwrite(fd, pattern, record, here) : pread(fd, buffer, record, here);
        if (!writes) {
            total += (long)(sum(buffer, record) & 0xFF);
        }
    }
    say("stream", total);
}
static void seek(int fd) {
    static const int whence[] = {SEEK_SET, SEEK_SET, SEEK_CUR, SEEK_CUR, SEEK_END, SEEK_END, SEEK_DATA, SEEK_HOLE, 99};
    long offset = below(5) == 0 ? -below(1000) : place() / 4;
    int way = whence[below(9)];
    off_t got = lseek(fd, offset, way);
    // Where data and holes are is the file system's choice; that the offset is the one returned is not.
    say("seek", way == SEEK_DATA || way == SEEK_HOLE ? (got >= 0) : got);
    if (way == SEEK_DATA || way == SEEK_HOLE) {
        say("seek back", lseek(fd, 0, SEEK_SET));
    }
}
static void status(int fd) {
    struct stat got = {0};
    struct statx more = {0};
    long kind = below(3);
    long done = kind == 0 ? fstat(fd, &got) : kind == 1 ? stat(name(next()), &got) : statx(AT_FDCWD, name(next()), 0, STATX_SIZE, &more);
    say("status", done);
    printf("  size %ld\n", done < 0 ? 0L : (long)(kind == 2 ? (long)more.stx_size : got.st_size));
}
static void resize(int fd) {
    long kind = below(6);
    long at = place();
    long done = kind == 0   ? ftruncate(fd, at)
                : kind == 1 ? truncate(name(next()), at)
                : kind == 2 ? fallocate(fd, FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE, at / 2, 1 + length())
                : kind == 3 ? fallocate(fd, FALLOC_FL_KEEP_SIZE, at, 1 + length())
                : kind == 4 ? posix_fallocate(fd, at, 1 + length())
                            : ftruncate(fd, -1);
    say("resize", done);
}
static void duplicate(int at) {
    int to = (int)below(SLOTS);
    int kind = (int)below(4);
    if (slot[at] < 0 || slot[to] < 0 || to == at) {
        return;
    }
    if (kind == 0) {
        say("dup2", dup2(slot[at], slot[to]));
    } else if (kind == 1) {
        say("dup3", dup3(slot[at], slot[to], O_CLOEXEC));
    } else {
        say("close", close(slot[to]));
        slot[to] = kind == 2 ? dup(slot[at]) : fcntl(slot[at], F_DUPFD_CLOEXEC, 20);
        say("dup", slot[to]);
    }
}
static void copy(int fd) {
    int other = slot[below(SLOTS)];
    off_t from = place(), to = place();
    long kind = below(4);
    long bytes = length();
    long got = kind == 0   ? copy_file_range(fd, &from, other, &to, bytes, 0)
               : kind == 1 ? copy_file_range(fd, NULL, other, NULL, bytes, 0)
               : kind == 2 ? sendfile(other, fd, &from, bytes)
                           : sendfile(other, fd, NULL, bytes);
    say("copy", got);
}
static void map(int fd) {
    char* got = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    struct stat size;
    if (got == MAP_FAILED) {
        say("map", -1);
        return;
    }
    fstat(fd, &size);
    long bytes = size.st_size < 4096 ? size.st_size : 4096;
    printf("%ld map %lx\n", step, (unsigned long)sum(got, bytes));
    if (bytes > 10) {
        memset(got + below(bytes - 8), 'm', 8);
    }
    munmap(got, 4096);
}
static void children(int fd) {
    int result = 0;
    long kind = below(4);
    fflush(stdout);
    if (kind == 0) {
        pid_t child = fork();
        if (child == 0) {
            fill(100);
            _exit((int)write(fd, pattern, 100) & 0x7F);
        }
        waitpid(child, &result, 0);
    } else if (kind == 1) {
        pid_t child = vfork();
        if (child == 0) {
            dup2(fd, 1);
            execl("/bin/sh", "sh", "-c", "echo from the child", (char*)NULL);
            _exit(127);
        }
        waitpid(child, &result, 0);
    } else if (kind == 2) {
        char* arguments[] = {"sh", "-c", "cat file0 file1 file2 2>/dev/null | cksum", NULL};
        pid_t child;
        posix_spawn(&child, "/bin/sh", NULL, NULL, arguments, environ);
        waitpid(child, &result, 0);
    } else {
        result = system("cat file0 file1 file2 2>/dev/null | cksum");
    }
    say("child", result);
}
static void streams(int fd) {
    if (below(2) == 0) {
        FILE* one = fopen(name(next()), below(2) ? "r" : "a");
        if (one != NULL) {
            fill(64);
            long got = (long)fread(buffer, 1, 5000, one) + (long)fwrite(pattern, 1, 50, one);
            fclose(one);
            say("stream of libc", got);
            printf("  %lx\n", (unsigned long)sum(buffer, 64));
        }
    } else {
        int copy_of = dup(fd);
        FILE* one = copy_of >= 0 ? fdopen(copy_of, "r+") : NULL;
        say("fdopen", one != NULL);
        if (one != NULL) {
            fseek(one, 10, SEEK_SET);
            say("fwrite", (long)fwrite("0123456789", 1, 10, one));
            fclose(one);
        } else {
            close(copy_of);
        }
    }
}
static void others(int fd) {
    struct flock lock = {.l_type = (short)(below(2) ? F_WRLCK : F_UNLCK), .l_whence = SEEK_SET, .l_start = 0, .l_len = 100};
    switch (below(12)) {
        case 0: say("fsync", fsync(fd)); break;
        case 1: say("fdatasync", fdatasync(fd)); break;
        case 2: say("flock", flock(fd, LOCK_SH | LOCK_NB) < 0 ? -1 : flock(fd, LOCK_UN)); break;
        case 3: say("lock", fcntl(fd, F_SETLK, &lock)); break;
        case 4: say("rename", rename(name(next()), name(next()))); break;
        case 5: say("unlink", below(3) == 0 ? unlink(name(next())) : 0); break;
        case 6: say("append", below(4) == 0 ? fcntl(fd, F_SETFL, below(2) ? O_APPEND : 0) : 0); break;
        case 7: say("no memory", write(fd, NULL, 10)); break;
        case 8: say("negative", pwrite(fd, pattern, 10, -5)); break;
        case 9: say("too many", readv(fd, (struct iovec*)pattern, -1)); break;
        case 10: say("raw", syscall(SYS_write, fd, pattern, below(300))); break;
        default: say("advice", posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED)); break;
    }
}

int main(int argc, char** argv) {
    if (argc < 4 || chdir(argv[1]) != 0) {
        return 2;
    }
    state = strtoull(argv[2], NULL, 10) * 0x9E3779B97F4A7C15ULL + 12345;
    long count = atol(argv[3]);
    largest = argc > 4 ? atol(argv[4]) : largest;
    for (int i = 0; i < SLOTS; ++i) {
        slot[i] = -1;
    }
    for (int i = 0; i < SLOTS; ++i) {
        open_one(i);
    }
    for (step = 0; step < count; ++step) {
        int at = (int)below(SLOTS);
        int fd = slot[at];
        long kind = below(1000);
        if (kind < 600) {
            transfer(fd);
        } else if (kind < 700) {
            stream(fd);
        } else if (kind < 800) {
            seek(fd);
        } else if (kind < 850) {
            status(fd);
        } else if (kind < 870) {
            resize(fd);
        } else if (kind < 900) {
            open_one(at);
        } else if (kind < 920) {
            duplicate(at);
        } else if (kind < 940) {
            copy(fd);
        } else if (kind < 942) {
            map(fd);
        } else if (kind < 946) {
            children(fd);
        } else if (kind < 952) {
            streams(fd);
        } else {
            others(fd);
        }
        if (slot[at] >= 0) {
            printf("  at %ld\n", (long)lseek(slot[at], 0, SEEK_CUR));
        }
    }
    return 0;  // files stay open: the end of the process closes them
}
