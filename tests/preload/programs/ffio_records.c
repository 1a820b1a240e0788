// SPDX-License-Identifier: Apache-2.0
// Writes and reads records by FFIO calls, as a program of the talk on the Cray X1 would; prints bytes and allocated
// bytes of the file before and after its close.
#include <ffio.h>
#include <stdio.h>
#include <string.h>

enum { count = 4000, bytes = 1000 };

int main(int argc, char** argv) {
    if (argc != 2) {
        return 9;
    }
    char record[bytes];
    struct stat about;
    struct ffsw status;
    const int fd = ffopen(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0644);
    for (int i = 0; i < count; ++i) {
        memset(record, i % 100, bytes);
        if (ffwrite(fd, record, bytes) != bytes) {
            return 1;
        }
    }
    if (ffflush(fd, &status) != 0 || status.sw_error != 0 || fstat(fd, &about) != 0) {
        return 2;
    }
    printf("%lld %lld ", (long long)about.st_size, (long long)about.st_blocks * 512);
    if (ffseek(fd, 0, SEEK_SET) != 0) {
        return 3;
    }
    for (int i = 0; i < count; ++i) {
        if (ffread(fd, record, bytes) != bytes || record[0] != i % 100 || record[bytes - 1] != i % 100) {
            return 4;
        }
    }
    if (ffweof(fd) != -1 || errno != ENOTSUP || ffclose(fd) != 0 || stat(argv[1], &about) != 0) {
        return 5;
    }
    printf("%lld %lld\n", (long long)about.st_size, (long long)about.st_blocks * 512);
    return ffclose(fd) == -1 && errno == EBADF ? 0 : 6;
}
