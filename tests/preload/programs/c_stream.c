// SPDX-License-Identifier: Apache-2.0
// Writes 3,000 records of 100 bytes by a stream of the C library, and says how many system calls that wrote data it took.
// Usage: c_stream FILE [fork|setvbuf|freopen|append|read|many|both]
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RECORDS = 3000, RECORD = 100 };

static long calls(const char* what) {
    char line[64];
    long found = 0;
    FILE* io = fopen("/proc/self/io", "r");
    while (fgets(line, sizeof(line), io) != NULL) {
        if (strncmp(line, what, 5) == 0) {
            found = atol(line + 7);
        }
    }
    fclose(io);
    return found;
}

static void records(FILE* file) {
    for (int i = 0; i < RECORDS; ++i) {
        fprintf(file, "%-*d\n", RECORD - 1, i);
    }
}

int main(int argc, char** argv) {
    const char* what = argc > 2 ? argv[2] : "";
    if (strcmp(what, "read") == 0) {
        FILE* file = fopen(argv[1], "r");
        char record[RECORD + 1];
        long before = calls("syscr"), sum = 0;
        while (fread(record, 1, RECORD, file) == RECORD) {
            sum += atol(record);
        }
        long spent = calls("syscr") - before;
        printf("%ld %ld\n", spent, sum);
        return fclose(file);
    }
    if (strcmp(what, "many") == 0) {
        for (int i = 0; i < 2000; ++i) {
            FILE* file = fopen(argv[1], "w");
            fputs("x", file);
            fclose(file);
        }
    }
    FILE* file = fopen(argv[1], strcmp(what, "append") == 0 ? "a" : strcmp(what, "both") == 0 ? "w+" : "w");
    static char own[8192];
    if (strcmp(what, "setvbuf") == 0) {
        setvbuf(file, own, _IOFBF, sizeof(own));
    }
    if (strcmp(what, "freopen") == 0) {
        fputs("lost", file);
        file = freopen(argv[1], "w", file);
    }
    long before = calls("syscw");
    records(file);
    if (strcmp(what, "fork") == 0) {
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            exit(0);  // writes what it has inherited
        }
        waitpid(child, NULL, 0);
    }
    long spent = calls("syscw") - before;
    printf("%ld\n", spent);
    fprintf(file, "end\n");
    return strcmp(what, "freopen") == 0 ? 0 : fclose(file);  // or exit() does it
}
