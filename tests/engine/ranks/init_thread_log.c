// SPDX-License-Identifier: Apache-2.0
// Loaded before MPI: writes the level of threads that MPI_Init_thread is asked for to the file INIT_THREAD_LOG.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

typedef int InitThread(int* count, char*** arguments, int required, int* provided);

int MPI_Init_thread(int* count, char*** arguments, int required, int* provided) {
    FILE* log = fopen(getenv("INIT_THREAD_LOG"), "a");
    if (log != NULL) {
        fprintf(log, "%d\n", required);
        fclose(log);
    }
    InitThread* const real = (InitThread*)dlsym(RTLD_DEFAULT, "PMPI_Init_thread");
    return real == NULL ? 1 : real(count, arguments, required, provided);
}
