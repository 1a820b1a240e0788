// SPDX-License-Identifier: Apache-2.0
// The calls of MPI-IO that we stand in front of. Handles of MPI are integers in one MPI and pointers in another; all
// arguments arrive in registers and are handed on as they are. The functions for Fortran call those for C.
#pragma once

#define SONDE_OF_MPI (long a, long b, long c, long d, long e, long f)

// All ranks move data together: who writes or reads for another must find what that one wrote.
#define SONDE_CALLS_MPI_COLLECTIVE(X)                     \
    X(long, MPI_File_write_all, SONDE_OF_MPI)             \
    X(long, MPI_File_write_all_c, SONDE_OF_MPI)           \
    X(long, PMPI_File_write_all, SONDE_OF_MPI)            \
    X(long, PMPI_File_write_all_c, SONDE_OF_MPI)          \
    X(long, MPI_File_write_at_all, SONDE_OF_MPI)          \
    X(long, MPI_File_write_at_all_c, SONDE_OF_MPI)        \
    X(long, PMPI_File_write_at_all, SONDE_OF_MPI)         \
    X(long, PMPI_File_write_at_all_c, SONDE_OF_MPI)       \
    X(long, MPI_File_write_all_begin, SONDE_OF_MPI)       \
    X(long, MPI_File_write_all_begin_c, SONDE_OF_MPI)     \
    X(long, PMPI_File_write_all_begin, SONDE_OF_MPI)      \
    X(long, PMPI_File_write_all_begin_c, SONDE_OF_MPI)    \
    X(long, MPI_File_write_at_all_begin, SONDE_OF_MPI)    \
    X(long, MPI_File_write_at_all_begin_c, SONDE_OF_MPI)  \
    X(long, PMPI_File_write_at_all_begin, SONDE_OF_MPI)   \
    X(long, PMPI_File_write_at_all_begin_c, SONDE_OF_MPI) \
    X(long, MPI_File_iwrite_all, SONDE_OF_MPI)            \
    X(long, MPI_File_iwrite_all_c, SONDE_OF_MPI)          \
    X(long, PMPI_File_iwrite_all, SONDE_OF_MPI)           \
    X(long, PMPI_File_iwrite_all_c, SONDE_OF_MPI)         \
    X(long, MPI_File_iwrite_at_all, SONDE_OF_MPI)         \
    X(long, MPI_File_iwrite_at_all_c, SONDE_OF_MPI)       \
    X(long, PMPI_File_iwrite_at_all, SONDE_OF_MPI)        \
    X(long, PMPI_File_iwrite_at_all_c, SONDE_OF_MPI)      \
    X(long, MPI_File_read_all, SONDE_OF_MPI)              \
    X(long, MPI_File_read_all_c, SONDE_OF_MPI)            \
    X(long, PMPI_File_read_all, SONDE_OF_MPI)             \
    X(long, PMPI_File_read_all_c, SONDE_OF_MPI)           \
    X(long, MPI_File_read_at_all, SONDE_OF_MPI)           \
    X(long, MPI_File_read_at_all_c, SONDE_OF_MPI)         \
    X(long, PMPI_File_read_at_all, SONDE_OF_MPI)          \
    X(long, PMPI_File_read_at_all_c, SONDE_OF_MPI)        \
    X(long, MPI_File_read_all_begin, SONDE_OF_MPI)        \
    X(long, MPI_File_read_all_begin_c, SONDE_OF_MPI)      \
    X(long, PMPI_File_read_all_begin, SONDE_OF_MPI)       \
    X(long, PMPI_File_read_all_begin_c, SONDE_OF_MPI)     \
    X(long, MPI_File_read_at_all_begin, SONDE_OF_MPI)     \
    X(long, MPI_File_read_at_all_begin_c, SONDE_OF_MPI)   \
    X(long, PMPI_File_read_at_all_begin, SONDE_OF_MPI)    \
    X(long, PMPI_File_read_at_all_begin_c, SONDE_OF_MPI)  \
    X(long, MPI_File_iread_all, SONDE_OF_MPI)             \
    X(long, MPI_File_iread_all_c, SONDE_OF_MPI)           \
    X(long, PMPI_File_iread_all, SONDE_OF_MPI)            \
    X(long, PMPI_File_iread_all_c, SONDE_OF_MPI)          \
    X(long, MPI_File_iread_at_all, SONDE_OF_MPI)          \
    X(long, MPI_File_iread_at_all_c, SONDE_OF_MPI)        \
    X(long, PMPI_File_iread_at_all, SONDE_OF_MPI)         \
    X(long, PMPI_File_iread_at_all_c, SONDE_OF_MPI)

// Calls with the shared file pointer, which MPI-IO stores in a separate file.
#define SONDE_CALLS_MPI_SHARED_OFFSET(X)                   \
    X(long, MPI_File_write_shared, SONDE_OF_MPI)           \
    X(long, MPI_File_write_shared_c, SONDE_OF_MPI)         \
    X(long, PMPI_File_write_shared, SONDE_OF_MPI)          \
    X(long, PMPI_File_write_shared_c, SONDE_OF_MPI)        \
    X(long, MPI_File_iwrite_shared, SONDE_OF_MPI)          \
    X(long, MPI_File_iwrite_shared_c, SONDE_OF_MPI)        \
    X(long, PMPI_File_iwrite_shared, SONDE_OF_MPI)         \
    X(long, PMPI_File_iwrite_shared_c, SONDE_OF_MPI)       \
    X(long, MPI_File_write_ordered, SONDE_OF_MPI)          \
    X(long, MPI_File_write_ordered_c, SONDE_OF_MPI)        \
    X(long, PMPI_File_write_ordered, SONDE_OF_MPI)         \
    X(long, PMPI_File_write_ordered_c, SONDE_OF_MPI)       \
    X(long, MPI_File_write_ordered_begin, SONDE_OF_MPI)    \
    X(long, MPI_File_write_ordered_begin_c, SONDE_OF_MPI)  \
    X(long, PMPI_File_write_ordered_begin, SONDE_OF_MPI)   \
    X(long, PMPI_File_write_ordered_begin_c, SONDE_OF_MPI) \
    X(long, MPI_File_read_shared, SONDE_OF_MPI)            \
    X(long, MPI_File_read_shared_c, SONDE_OF_MPI)          \
    X(long, PMPI_File_read_shared, SONDE_OF_MPI)           \
    X(long, PMPI_File_read_shared_c, SONDE_OF_MPI)         \
    X(long, MPI_File_iread_shared, SONDE_OF_MPI)           \
    X(long, MPI_File_iread_shared_c, SONDE_OF_MPI)         \
    X(long, PMPI_File_iread_shared, SONDE_OF_MPI)          \
    X(long, PMPI_File_iread_shared_c, SONDE_OF_MPI)        \
    X(long, MPI_File_read_ordered, SONDE_OF_MPI)           \
    X(long, MPI_File_read_ordered_c, SONDE_OF_MPI)         \
    X(long, PMPI_File_read_ordered, SONDE_OF_MPI)          \
    X(long, PMPI_File_read_ordered_c, SONDE_OF_MPI)        \
    X(long, MPI_File_read_ordered_begin, SONDE_OF_MPI)     \
    X(long, MPI_File_read_ordered_begin_c, SONDE_OF_MPI)   \
    X(long, PMPI_File_read_ordered_begin, SONDE_OF_MPI)    \
    X(long, PMPI_File_read_ordered_begin_c, SONDE_OF_MPI)  \
    X(long, MPI_File_seek_shared, SONDE_OF_MPI)            \
    X(long, PMPI_File_seek_shared, SONDE_OF_MPI)           \
    X(long, MPI_File_get_position_shared, SONDE_OF_MPI)    \
    X(long, PMPI_File_get_position_shared, SONDE_OF_MPI)

// Order what ranks did before with what they do afterwards, or change the size for all.
#define SONDE_CALLS_MPI_SYNC(X)                  \
    X(long, MPI_File_set_size, SONDE_OF_MPI)     \
    X(long, PMPI_File_set_size, SONDE_OF_MPI)    \
    X(long, MPI_File_preallocate, SONDE_OF_MPI)  \
    X(long, PMPI_File_preallocate, SONDE_OF_MPI) \
    X(long, MPI_File_sync, SONDE_OF_MPI)         \
    X(long, PMPI_File_sync, SONDE_OF_MPI)

#define SONDE_CALLS_MPI(X)                        \
    SONDE_CALLS_MPI_COLLECTIVE(X)                 \
    SONDE_CALLS_MPI_SHARED_OFFSET(X)              \
    SONDE_CALLS_MPI_SYNC(X)                       \
    X(long, MPI_File_open, SONDE_OF_MPI)          \
    X(long, PMPI_File_open, SONDE_OF_MPI)         \
    X(long, MPI_File_set_view, SONDE_OF_MPI)      \
    X(long, PMPI_File_set_view, SONDE_OF_MPI)     \
    X(long, MPI_File_set_atomicity, SONDE_OF_MPI) \
    X(long, PMPI_File_set_atomicity, SONDE_OF_MPI)
