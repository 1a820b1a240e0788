// SPDX-License-Identifier: Apache-2.0
// Ranks that share a file through MPI-IO, in many ways one after the other: mpi_io FOLDER, with a file for each. Rank 0
// prints what each rank has seen, which the standard of MPI leaves no choice about.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RECORD = 100, RECORDS = 600, PART = RECORD * RECORDS };
static int rank, ranks;
static char path[4000];
static unsigned long seen;

static void see(const char* data, long bytes) {
    for (long i = 0; i < bytes; ++i) seen = seen * 31 + (unsigned char)data[i];
    seen = seen * 31 + (unsigned long)bytes;
}
static void fill(char* record, int writer, int number) {
    for (int i = 0; i < RECORD; ++i) record[i] = (char)(writer * 7 + number * 13 + i);
}
static MPI_File open_as(MPI_Comm group, const char* name, int mode) {
    MPI_File file;
    if (MPI_File_open(group, name, mode, MPI_INFO_NULL, &file) != MPI_SUCCESS) MPI_Abort(MPI_COMM_WORLD, 3);
    return file;
}
static MPI_File open_shared(void) { return open_as(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_CREATE); }
static void write_part(MPI_File file, MPI_Offset at, int number) {
    char record[RECORD];
    for (int i = 0; i < RECORDS; ++i) {
        fill(record, rank, number + i);
        MPI_File_write_at(file, at + (MPI_Offset)i * RECORD, record, RECORD, MPI_BYTE, MPI_STATUS_IGNORE);
    }
}
static void read_part(MPI_File file, MPI_Offset at) {
    char record[RECORD];
    for (int i = 0; i < RECORDS; ++i) {
        MPI_Status status;
        int got = 0;
        memset(record, 0, sizeof(record));
        MPI_File_read_at(file, at + (MPI_Offset)i * RECORD, record, RECORD, MPI_BYTE, &status);
        MPI_Get_count(&status, MPI_BYTE, &got);
        see(record, got);
    }
}
static void agree(MPI_File file) {  // what the standard asks for between a write and a read of it elsewhere
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_sync(file);
}
static MPI_Offset mine(void) { return (MPI_Offset)rank * PART; }
static MPI_Offset next(void) { return (MPI_Offset)((rank + 1) % ranks) * PART; }

static void parts(void) {  // what others wrote is read before and after they write more
    MPI_File file = open_shared();
    write_part(file, mine(), 0);
    agree(file);
    read_part(file, next());
    agree(file);
    write_part(file, mine(), 1000);
    agree(file);
    read_part(file, next());
    read_part(file, mine());
    MPI_File_close(&file);
}
static void pieces(void) {  // that interleave
    MPI_File file = open_shared();
    char record[RECORD];
    for (int i = 0; i < RECORDS; ++i) {
        fill(record, rank, i);
        MPI_File_write_at(file, ((MPI_Offset)i * ranks + rank) * RECORD, record, RECORD, MPI_BYTE, MPI_STATUS_IGNORE);
    }
    agree(file);
    for (int part = 0; part < ranks; ++part) read_part(file, (MPI_Offset)part * PART);
    MPI_File_close(&file);
}
static void opened_again(void) {
    MPI_File file = open_shared();
    write_part(file, mine(), 0);
    MPI_File_close(&file);
    MPI_Barrier(MPI_COMM_WORLD);
    file = open_shared();
    read_part(file, next());
    MPI_File_close(&file);
}
static void collective(void) {  // one rank may write for another, and read what that one holds
    MPI_File file = open_shared();
    char* all = malloc(PART);
    write_part(file, mine(), 0);
    memset(all, 'a' + rank, PART);
    MPI_File_write_at_all(file, mine() + RECORD / 2, all, RECORD, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_read_at_all(file, mine(), all, PART, MPI_BYTE, MPI_STATUS_IGNORE);
    see(all, PART);
    MPI_File_close(&file);
    free(all);
}
static void atomic(void) {
    MPI_File file = open_shared();
    MPI_File_set_atomicity(file, 1);
    for (int turn = 0; turn < ranks; ++turn) {
        if (rank == turn) write_part(file, 0, 100 * turn);
        MPI_Barrier(MPI_COMM_WORLD);
        read_part(file, 0);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_File_close(&file);
}
static void shared_offset(void) {
    MPI_File file = open_shared();
    char record[RECORD];
    memset(record, 'x', sizeof(record));
    for (int i = 0; i < 20; ++i) MPI_File_write_shared(file, record, RECORD, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    fill(record, rank, 5);
    MPI_File_write_ordered(file, record, RECORD, MPI_BYTE, MPI_STATUS_IGNORE);
    agree(file);
    for (int i = 0; i < 21 * ranks; ++i) {
        MPI_File_read_at(file, (MPI_Offset)i * RECORD, record, RECORD, MPI_BYTE, MPI_STATUS_IGNORE);
        see(record, RECORD);
    }
    MPI_File_close(&file);
}
static void holes(void) {
    MPI_File file = open_shared();
    MPI_Datatype comb;
    char record[RECORD];
    MPI_Type_vector(50, RECORD, 2 * RECORD * ranks, MPI_BYTE, &comb);
    MPI_Type_commit(&comb);
    MPI_File_set_view(file, (MPI_Offset)rank * RECORD, MPI_BYTE, comb, "native", MPI_INFO_NULL);
    char* all = malloc(50 * RECORD);
    for (int i = 0; i < 50; ++i) fill(all + i * RECORD, rank, i);
    MPI_File_write(file, all, 50 * RECORD, MPI_BYTE, MPI_STATUS_IGNORE);
    agree(file);
    MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
    for (int i = 0; i < 100 * ranks; ++i) {
        MPI_File_read_at(file, (MPI_Offset)i * RECORD, record, RECORD, MPI_BYTE, MPI_STATUS_IGNORE);
        see(record, RECORD);
    }
    MPI_Type_free(&comb);
    MPI_File_close(&file);
    free(all);
}
static void size(void) {
    MPI_File file = open_shared();
    MPI_Offset bytes = 0;
    write_part(file, mine(), 0);
    agree(file);
    read_part(file, next());
    MPI_File_get_size(file, &bytes);
    seen = seen * 31 + (unsigned long)bytes;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_set_size(file, PART / 2);
    agree(file);
    MPI_File_get_size(file, &bytes);
    seen = seen * 31 + (unsigned long)bytes;
    read_part(file, 0);
    read_part(file, next());
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_preallocate(file, 3 * PART);
    agree(file);
    MPI_File_get_size(file, &bytes);
    seen = seen * 31 + (unsigned long)bytes;
    MPI_File_close(&file);
}
static void two_handles(void) {
    MPI_File file = open_shared();
    MPI_File other = open_shared();
    write_part(file, mine(), 0);
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_sync(other);
    read_part(other, next());
    MPI_File_close(&other);
    MPI_File_close(&file);
}
static void own_files(void) {
    char name[4096];
    snprintf(name, sizeof(name), "%s.%d", path, rank);
    MPI_File file = open_as(MPI_COMM_SELF, name, MPI_MODE_RDWR | MPI_MODE_CREATE);
    write_part(file, 0, 0);
    read_part(file, 0);
    MPI_File_close(&file);
}
static void read_only(void) {
    MPI_File file = open_as(MPI_COMM_SELF, path, MPI_MODE_WRONLY | MPI_MODE_CREATE);
    if (rank == 0) write_part(file, 0, 0);
    MPI_File_close(&file);
    MPI_Barrier(MPI_COMM_WORLD);
    file = open_as(MPI_COMM_WORLD, path, MPI_MODE_RDONLY);
    read_part(file, 0);
    MPI_File_close(&file);
}

int main(int count, char** words) {
    static const struct { const char* name; void (*play)(void); } scenarios[] = {
        {"parts", parts}, {"pieces", pieces}, {"opened_again", opened_again}, {"collective", collective},
        {"atomic", atomic}, {"shared_offset", shared_offset}, {"holes", holes}, {"size", size},
        {"two_handles", two_handles}, {"own_files", own_files}, {"read_only", read_only}};
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (unsigned i = 0; i < sizeof(scenarios) / sizeof(*scenarios); ++i) {
        unsigned long all[64];
        snprintf(path, sizeof(path), "%s/%s", words[1], scenarios[i].name);
        seen = 0;
        scenarios[i].play();
        MPI_Gather(&seen, 1, MPI_UNSIGNED_LONG, all, 1, MPI_UNSIGNED_LONG, 0, MPI_COMM_WORLD);
        for (int k = 0; rank == 0 && k < ranks; ++k) printf("%s %d %lx\n", scenarios[i].name, k, all[k]);
    }
    MPI_Finalize();
    return 0;
}
