// SPDX-License-Identifier: Apache-2.0
// The calls of MPI-IO that we stand in front of. Handles of MPI are integers in one MPI and pointers in another; all
// arguments arrive in registers and are handed on as they are. The functions for Fortran call those for C.
#pragma once

#define SONDE_OF_MPI (long a, long b, long c, long d, long e, long f)

// The function and the one behind its name for profiling.
#define SONDE_MPI_PAIR(X, name)            \
    X(long, MPI_File_##name, SONDE_OF_MPI) \
    X(long, PMPI_File_##name, SONDE_OF_MPI)
// The same, and with counts of 64 bits.
#define SONDE_MPI_TRANSFER(X, name) \
    SONDE_MPI_PAIR(X, name)         \
    SONDE_MPI_PAIR(X, name##_c)

// All ranks move data together: who writes or reads for another must find what that one wrote.
#define SONDE_CALLS_MPI_COLLECTIVE(X)         \
    SONDE_MPI_TRANSFER(X, write_all)          \
    SONDE_MPI_TRANSFER(X, write_at_all)       \
    SONDE_MPI_TRANSFER(X, write_all_begin)    \
    SONDE_MPI_TRANSFER(X, write_at_all_begin) \
    SONDE_MPI_TRANSFER(X, iwrite_all)         \
    SONDE_MPI_TRANSFER(X, iwrite_at_all)      \
    SONDE_MPI_TRANSFER(X, read_all)           \
    SONDE_MPI_TRANSFER(X, read_at_all)        \
    SONDE_MPI_TRANSFER(X, read_all_begin)     \
    SONDE_MPI_TRANSFER(X, read_at_all_begin)  \
    SONDE_MPI_TRANSFER(X, iread_all)          \
    SONDE_MPI_TRANSFER(X, iread_at_all)

// Calls with the shared file pointer, which MPI-IO stores in a separate file.
#define SONDE_CALLS_MPI_SHARED_OFFSET(X)       \
    SONDE_MPI_TRANSFER(X, write_shared)        \
    SONDE_MPI_TRANSFER(X, iwrite_shared)       \
    SONDE_MPI_TRANSFER(X, write_ordered)       \
    SONDE_MPI_TRANSFER(X, write_ordered_begin) \
    SONDE_MPI_TRANSFER(X, read_shared)         \
    SONDE_MPI_TRANSFER(X, iread_shared)        \
    SONDE_MPI_TRANSFER(X, read_ordered)        \
    SONDE_MPI_TRANSFER(X, read_ordered_begin)  \
    SONDE_MPI_PAIR(X, seek_shared)             \
    SONDE_MPI_PAIR(X, get_position_shared)

// Order what ranks did before with what they do afterwards, or change the size for all.
#define SONDE_CALLS_MPI_SYNC(X)    \
    SONDE_MPI_PAIR(X, set_size)    \
    SONDE_MPI_PAIR(X, preallocate) \
    SONDE_MPI_PAIR(X, sync)

#define SONDE_CALLS_MPI(X)           \
    SONDE_CALLS_MPI_COLLECTIVE(X)    \
    SONDE_CALLS_MPI_SHARED_OFFSET(X) \
    SONDE_CALLS_MPI_SYNC(X)          \
    SONDE_MPI_PAIR(X, open)          \
    SONDE_MPI_PAIR(X, set_view)      \
    SONDE_MPI_PAIR(X, set_atomicity)
