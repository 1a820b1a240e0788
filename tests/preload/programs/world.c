// SPDX-License-Identifier: Apache-2.0
// A small world: processes that each make a few operations on one file, one at a time, in an order that is given.
// On standard input lines of ORDER PROGRAM PROGRAM [PROGRAM]: ORDER is a string of digits, whose turn it is; a PROGRAM a
// string of letters, one an operation. For each line one with what every operation returned, and the file at the end.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 3 };
struct Turn { char operation; };
struct Answer { long value; unsigned long sum; };

static int fd = -1;
/// Small records, several at a time, so that there is something to gather.
static struct Answer operate(char operation, int process) {
    struct Answer answer = {0, 0};
    char record[8];
    struct stat got;
    memset(record, 'a' + process, sizeof(record));
    switch (operation) {
        case 'w':  // a few records at the offset
            for (int i = 0; i < 5; ++i) answer.value += write(fd, record, sizeof(record));
            break;
        case 'p':
            for (int i = 0; i < 5; ++i) answer.value += pwrite(fd, record, sizeof(record), 4 + i * (long)sizeof(record));
            break;
        case 'r':
            for (int i = 0; i < 5; ++i) {
                memset(record, 0, sizeof(record));
                answer.value = answer.value * 10 + read(fd, record, sizeof(record));
                for (unsigned k = 0; k < sizeof(record); ++k) answer.sum = answer.sum * 31 + (unsigned char)record[k];
            }
            break;
        case 'P':
            for (int i = 0; i < 5; ++i) {
                memset(record, 0, sizeof(record));
                answer.value = answer.value * 10 + pread(fd, record, sizeof(record), i * (long)sizeof(record));
                for (unsigned k = 0; k < sizeof(record); ++k) answer.sum = answer.sum * 31 + (unsigned char)record[k];
            }
            break;
        case 's': answer.value = stat("data", &got) == 0 ? got.st_size : -errno; break;
        case 'f': answer.value = fstat(fd, &got) == 0 ? got.st_size : -errno; break;
        case 'e': answer.value = lseek(fd, 0, SEEK_END); break;
        case 'b': answer.value = lseek(fd, 0, SEEK_SET); break;
        case 't': answer.value = truncate("data", 20); break;
        case 'c': close(fd); fd = open("data", O_RDWR | O_CREAT, 0644); answer.value = fd >= 0; break;
        case 'a': answer.value = fcntl(fd, F_SETFL, O_APPEND); break;
        case 'y': answer.value = fsync(fd); break;
        case 'l': { struct flock lock = {.l_type = F_WRLCK}; answer.value = fcntl(fd, F_SETLK, &lock) == 0; break; }
        case 'u': { struct flock lock = {.l_type = F_UNLCK}; answer.value = fcntl(fd, F_SETLK, &lock) == 0; break; }
        case 'x': { const pid_t child = fork(); if (child == 0) { _exit(write(fd, "x", 1) != 1); } int code; waitpid(child, &code, 0); answer.value = code; break; }
        default: answer.value = -1000;
    }
    return answer;
}
static void play(const char* order, char* const* programs, int count) {
    int to[MOST][2], from[MOST][2];
    pid_t children[MOST];
    unlink("data");
    close(open("data", O_RDWR | O_CREAT | O_TRUNC, 0644));
    for (int p = 0; p < count; ++p) {
        if (pipe(to[p]) != 0 || pipe(from[p]) != 0) exit(3);
        children[p] = fork();
        if (children[p] == 0) {
            struct Turn turn;
            fd = open("data", O_RDWR);
            for (int k = 0; k < p; ++k) close(to[k][1]);
            close(to[p][1]);
            while (read(to[p][0], &turn, sizeof(turn)) == (ssize_t)sizeof(turn)) {
                const struct Answer answer = operate(turn.operation, p);
                if (write(from[p][1], &answer, sizeof(answer)) < 0) _exit(1);
            }
            _exit(0);
        }
        close(to[p][0]);
        close(from[p][1]);
    }
    int done[MOST] = {0};
    for (; *order != 0; ++order) {
        const int p = *order - '0';
        struct Turn turn = {programs[p][done[p]++]};
        struct Answer answer = {-2000, 0};
        if (write(to[p][1], &turn, sizeof(turn)) < 0 || read(from[p][0], &answer, sizeof(answer)) < 0) exit(3);
        printf("%c%ld:%lx ", turn.operation, answer.value, answer.sum & 0xffff);
    }
    for (int p = 0; p < count; ++p) {
        close(to[p][1]);
        close(from[p][0]);
        waitpid(children[p], NULL, 0);
    }
    char text[4096];
    const int end = open("data", O_RDONLY);
    const ssize_t got = read(end, text, sizeof(text));
    unsigned long sum = 0;
    for (ssize_t i = 0; i < got; ++i) sum = sum * 31 + (unsigned char)text[i];
    printf("= %zd %lx\n", got, sum & 0xffffff);
    close(end);
}
int main(void) {
    char line[256];
    while (fgets(line, sizeof(line), stdin) != NULL) {
        char* words[MOST + 2] = {0};
        int count = 0;
        for (char* word = strtok(line, " \n"); word != NULL && count < MOST + 1; word = strtok(NULL, " \n")) words[count++] = word;
        if (count < 2) continue;
        play(words[0], words + 1, count - 1);
        fflush(stdout);
    }
    return 0;
}
