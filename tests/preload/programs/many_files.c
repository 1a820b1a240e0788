// SPDX-License-Identifier: Apache-2.0
// Many files, each written a little: many_files COUNT. They are all open when it prints a line and waits for the end of
// standard input.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int count, char** words) {
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
