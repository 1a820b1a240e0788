// SPDX-License-Identifier: Apache-2.0
// Writes 2,000 records of 100 bytes, changes one, reads them back, and ends with code 3: for other C libraries.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { records = 2000, record_bytes = 100 };

int main(void) {
    char record[record_bytes + 1];
    const int fd = open("records", O_RDWR | O_CREAT | O_TRUNC, 0644);
    for (int i = 0; i < records; ++i) {
        snprintf(record, sizeof(record), "%099d\n", i);
        if (write(fd, record, record_bytes) != record_bytes) {
            return 1;
        }
    }
    if (pwrite(fd, "patched", 7, 50 * record_bytes) != 7 || lseek(fd, 0, SEEK_SET) != 0) {
        return 1;
    }
    unsigned sum = 0;
    for (int i = 0; i < records; ++i) {
        if (read(fd, record, record_bytes) != record_bytes) {
            return 1;
        }
        for (int k = 0; k < record_bytes; ++k) {
            sum = sum * 31 + (unsigned char)record[k];
        }
    }
    printf("%u\n", sum);
    return close(fd) == 0 ? 3 : 1;
}
