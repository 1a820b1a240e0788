// SPDX-License-Identifier: Apache-2.0
// Descriptors that are closed, duplicated, opened again, mapped, refused and limited, and numbers that programs try.
#include "hazard.h"

#include <signal.h>
#include <sys/mman.h>

#if !__GLIBC_PREREQ(2, 34)  // the same call of the kernel
#define close_range(first, last, flags) (int)syscall(436, first, last, flags)
#define closefrom(first) syscall(436, first, ~0U, 0)
#endif

static void closes_all(void) {
    int fd = open_new("out");
    put(fd, 30, 'a');
    for (int i = 3; i < 1100; ++i) {
        close(i);
    }
    fd = open_new("second");
    put(fd, 30, 'b');
    printf("%d %ld\n", close_range(3, ~0U, 0), size_of("out"));
    printf("%ld\n", (long)write(fd, "x", 1));
    fd = open_new("third");
    put(fd, 30, 'c');
    closefrom(3);
    printf("%ld %ld\n", size_of("second"), size_of("third"));
}
static void to_stdout(void) {
    int fd = open_new("out"), kept = dup(1);
    put(fd, 3, 'a');
    fflush(stdout);
    dup2(fd, 1);
    printf("through the stream\n");
    fflush(stdout);
    put(fd, 3, 'b');
    dup2(kept, 1);
    printf("%ld\n", size_of("out"));
}
static void streams_too(void) {
    int fd = open_new("out");
    put(fd, 3, 'a');
    FILE* other = fopen("out", "r+");
    char line[1200] = "";
    printf("%d\n", fgets(line, sizeof(line), other) != NULL && line[0] == 'a');
    fseek(other, 0, SEEK_END);
    fputs("from the stream\n", other);
    fflush(other);
    put(fd, 1, 'b');
    fclose(other);
    FILE* mine = fdopen(fd, "r+");
    fputs("on the same descriptor\n", mine);
    fclose(mine);
    printf("%ld %d\n", size_of("out"), fcntl(fd, F_GETFD));
}
static void opens_again(void) {
    int fd = open_new("out");
    put(fd, 30, 'a');
    int other = open("out", O_WRONLY | O_TRUNC);
    printf("%ld\n", size_of("out"));
    put(other, 2, 'b');
    put(fd, 1, 'c');
    printf("%ld %ld\n", size_of("out"), (long)lseek(fd, 0, SEEK_CUR));
}
static void appends(void) {
    int fd = open_new("out"), other = open("out", O_WRONLY | O_APPEND), third = open("out", O_RDWR);
    put(fd, 3, 'a');
    put(other, 2, 'b');
    put(third, 1, 'c');
    fcntl(third, F_SETFL, O_APPEND);
    put(third, 1, 'd');
    printf("%ld\n", size_of("out"));
}
static void appends_with_child(void) {
    int fd = open("out", O_WRONLY | O_CREAT | O_APPEND, 0644), same = dup(fd), other = open("out", O_RDONLY);
    char text[40] = "";
    put(fd, 300, 'a');
    put(same, 20, 'b');
    pwrite(fd, "where it says 0\n", 16, 0);
    printf("%ld %zd\n", (long)lseek(same, 0, SEEK_CUR), pread(other, text, 30, 319990));
    printf("%s\n", text);
    if (fork() == 0) {
        put(fd, 100, 'c');
        _exit(0);
    }
    wait(NULL);
    put(same, 100, 'd');
    printf("%ld %ld\n", size_of("out"), (long)lseek(fd, 0, SEEK_CUR));
    ftruncate(fd, 1000);
    put(fd, 10, 'e');
    fcntl(fd, F_SETFL, 0);
    lseek(fd, 5000, SEEK_SET);
    put(fd, 1, 'f');
    printf("%ld\n", size_of("out"));
}
static void replaces_file(void) {
    int fd = open_new("new");
    put(fd, 30, 'n');
    rename("new", "out");
    fflush(stdout);
    printf("%d\n", system("cksum <out"));
    put(fd, 1, 'm');
    unlink("out");
    put(fd, 1, 'o');
    struct stat got;
    fstat(fd, &got);
    printf("%ld %ld\n", (long)got.st_size, (long)got.st_nlink);
}
static void maps(void) {
    int fd = open_new("out");
    put(fd, 8, 'a');
    char* seen = mmap(NULL, 8000, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    printf("%c%c\n", seen[0], seen[7998]);
    pwrite(fd, "written", 7, 100);
    printf("%.7s\n", seen + 100);
    memcpy(seen + 200, "mapped", 6);
    char text[8] = "";
    pread(fd, text, 6, 200);
    printf("%s\n", text);
}
static void refuses(void) {
    int fd = open_new("out"), reader = open("out", O_RDONLY);
    put(fd, 5, 'a');
    printf("%zd %s\n", write(reader, record, 10), strerror(errno));
    printf("%zd %s\n", pread(fd, (char*)16, 10, 0), strerror(errno));
    printf("%zd %s\n", pwrite(fd, record, 10, -1), strerror(errno));
    printf("%ld %s\n", (long)lseek(fd, -1, SEEK_SET), strerror(errno));
    printf("%ld %s\n", (long)lseek(fd, 0, 77), strerror(errno));
    printf("%zd\n", read(fd, record, 0));
    printf("%d %s\n", ftruncate(reader, 3), strerror(errno));
}
static void limited(void) {
    struct rlimit limit = {10000, 10000};
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
    int fd = open_new("out");
    memset(record, 'a', sizeof(record));
    long total = 0, got;
    while ((got = write(fd, record, 999)) > 0) {
        total += got;
    }
    printf("%ld %s %ld\n", total, strerror(errno), size_of("out"));
}

static void by_number(void) {  // calls that libc has no name for, or had none once
    struct { unsigned long flags, mode, resolve; } how = {O_RDWR | O_CREAT, 0644, 0};
    int fd = (int)syscall(437, AT_FDCWD, "out", &how, sizeof(how));
    put(fd, 30, 'a');
    printf("%d %ld\n", fd >= 0, size_of("out"));
    printf("%ld\n", syscall(436, fd, fd, 0));
    printf("%zd %ld\n", write(fd, "x", 1), size_of("out"));
}
static void tries_all_numbers(void) {  // as programs do that close or list whatever they find open
    put(open_new("out"), 30, 'a');
    for (int fd = 0; fd < 4096; ++fd) {
        struct stat got;
        const int by_status = fstat(fd, &got) == 0;
        const int by_flags = fcntl(fd, F_GETFD) >= 0;
        if (by_status || by_flags) {
            printf("%d %d %d\n", fd, by_status, by_flags);
        }
    }
}
static void closed_stderr(void) { put(open_new("out"), 30, 'a'); close(2); close(1); }

SCENARIOS(nothing_continues, ONE(closes_all), ONE(to_stdout), ONE(streams_too), ONE(opens_again), ONE(appends),
          ONE(appends_with_child), ONE(replaces_file), ONE(maps), ONE(refuses), ONE(limited), ONE(by_number),
          ONE(tries_all_numbers), ONE(closed_stderr))
