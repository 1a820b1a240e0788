// SPDX-License-Identifier: Apache-2.0
// PnetCDF, loaded at run time: the engine builds and runs where it is not installed. The declarations are those of
// PnetCDF 1.5 and later; tests/engine/formats compares them with the real header. Functions whose data have a C type
// are called, because those without one take an MPI_Datatype.
#pragma once

#include "backends/format_library.hpp"

#include <string>

namespace sonde::backends {

using NcSize = long long;  ///< MPI_Offset, 64 bits in every MPI

constexpr int nc_read_only = 0x0000, nc_read_write = 0x0001;                            ///< NC_NOWRITE, NC_WRITE
constexpr int nc_truncate = 0x0000, nc_exclusive = 0x0004, nc_offsets_64_bit = 0x0200;  ///< NC_CLOBBER, NC_NOCLOBBER
constexpr int nc_byte = 1;                                                              ///< NC_BYTE
constexpr NcSize nc_unlimited = 0;                                                      ///< NC_UNLIMITED

// Codes of the errors that are reported as a specific errno.
constexpr int nc_file_exists = -35, nc_no_netcdf = -51, nc_no_access = -77, nc_no_file = -220, nc_no_space = -224,
              nc_over_quota = -225;

/// The functions of PnetCDF that are called, by their names without ncmpi_.
struct PnetcdfFunctions {
    const char* (*strerror)(int) = nullptr;
    const char* (*inq_libvers)() = nullptr;
    int (*def_dim)(int, const char*, NcSize, int*) = nullptr;
    int (*def_var)(int, const char*, int, int, const int*, int*) = nullptr;
    int (*enddef)(int) = nullptr;
    int (*inq_varid)(int, const char*, int*) = nullptr;
    int (*inq_vartype)(int, int, int*) = nullptr;
    int (*inq_varndims)(int, int, int*) = nullptr;
    int (*inq_vardimid)(int, int, int*) = nullptr;
    int (*inq_dimlen)(int, int, NcSize*) = nullptr;
    int (*begin_indep_data)(int) = nullptr;
    int (*end_indep_data)(int) = nullptr;
    int (*sync)(int) = nullptr;
    int (*close)(int) = nullptr;
    int (*put_vara_schar)(int, int, const NcSize*, const NcSize*, const signed char*) = nullptr;
    int (*put_vara_schar_all)(int, int, const NcSize*, const NcSize*, const signed char*) = nullptr;
    int (*get_vara_schar)(int, int, const NcSize*, const NcSize*, signed char*) = nullptr;
    int (*get_vara_schar_all)(int, int, const NcSize*, const NcSize*, signed char*) = nullptr;
    void* create = nullptr;  ///< these two take a communicator, so the MPI module calls them
    void* open = nullptr;
};

/// Loads PnetCDF once for the process. Throws std::runtime_error with one sentence where no fitting library is.
const PnetcdfFunctions& load_pnetcdf();
/// Why load_pnetcdf() would fail; empty when it would not. Starts nothing.
std::string explain_missing_pnetcdf();

}  // namespace sonde::backends
