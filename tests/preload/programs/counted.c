// SPDX-License-Identifier: Apache-2.0
// Calls whose numbers are known beforehand, for the tracer. Usage: counted (in an empty folder)
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
    static char data[200000];
    struct stat got;
    int fd = open("sequential", O_RDWR | O_CREAT | O_TRUNC, 0644);
    for (int i = 0; i < 100; ++i) {
        write(fd, data, 1000);
    }
    fsync(fd);
    lseek(fd, 0, SEEK_SET);
    while (read(fd, data, 8192) > 0) {
    }
    int copy = dup(fd);
    pread(copy, data, 10, 50);
    close(fd);
    close(copy);
    fd = open("strided", O_RDWR | O_CREAT, 0644);
    for (int i = 0; i < 50; ++i) {
        pwrite(fd, data, 4096, i * 65536L);
    }
    ftruncate(fd, 1000000);
    fstat(fd, &got);
    read(-1, data, 10);
    pread(fd, data, 200000, 900000);
    if (fork() == 0) {
        int mine = open("child", O_WRONLY | O_CREAT, 0644);
        write(mine, data, 77);
        _exit(0);
    }
    wait(NULL);
    rename("child", "renamed");
    return 0;
}
