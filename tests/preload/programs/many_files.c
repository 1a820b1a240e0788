// SPDX-License-Identifier: Apache-2.0
// Many files, each written a little: many_files COUNT. They are all open when it prints a line and waits for the end of
// standard input. many_files all: as many as there can be, each written and read; says how many.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int open_all(void) {
    char name[64], record[100] = {1};
    int files = 0, fd = 0, good = 0;
    for (; files < 100000; ++files) {
        snprintf(name, sizeof(name), "file%d", files);
        fd = open(name, O_RDWR | O_CREAT, 0644);
        if (fd < 0) break;
        good += write(fd, record, sizeof(record)) == (ssize_t)sizeof(record) && pread(fd, record, 50, 50) == 50;
    }
    printf("%d files, %d good, the last descriptor %d\n", files, good, fd);
    return 0;
}

int main(int count, char** words) {
    if (words[1][0] == 'a') return open_all();
    const int files = atoi(words[1]);
    int* fds = malloc(sizeof(int) * (unsigned)files);
    const char record[100] = {1};
    char name[64];
    for (int i = 0; i < files; ++i) {
        snprintf(name, sizeof(name), "file%d", i);
        fds[i] = open(name, O_RDWR | O_CREAT, 0644);
        if (fds[i] < 0) return 1;
    }
    for (int k = 0; k < 3; ++k) {
        for (int i = 0; i < files; ++i) {
            if (write(fds[i], record, sizeof(record)) != (ssize_t)sizeof(record)) return 1;
        }
    }
    puts("open");
    fflush(stdout);
    while (count > 2 && getchar() != EOF) {
    }
    for (int i = 0; i < files; ++i) close(fds[i]);
    return 0;
}
