// SPDX-License-Identifier: Apache-2.0
// Writes numbered records of 1000 bytes from front to back until it is killed or storage refuses one; every 700 records
// it calls fsync and says on standard output how many records are safe. Usage: journal FILE [RECORDS [append]]
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char** argv) {
    char record[1001];
    long most = argc > 2 ? atol(argv[2]) : 1L << 40;
    int fd = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC | (argc > 3 ? O_APPEND : 0), 0644);
    for (long i = 0; i < most; ++i) {
        snprintf(record, sizeof(record), "%-999ld\n", i);
        ssize_t got = 0;
        for (long done = 0; done < 1000 && got >= 0; done += got) {
            got = write(fd, record + done, 1000 - done);
        }
        if (got < 0) {
            printf("write %ld: %s\n", i, strerror(errno));
            break;
        }
        if (i % 700 == 699) {
            if (fsync(fd) != 0) {
                printf("fsync %ld: %s\n", i, strerror(errno));
                break;
            }
            printf("safe %ld\n", i + 1);
            fflush(stdout);
        }
    }
    int closed = close(fd);
    printf("close %d %s\n", closed, closed != 0 ? strerror(errno) : "");
    return 0;
}
