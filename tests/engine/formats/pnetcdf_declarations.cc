// SPDX-License-Identifier: Apache-2.0
// Compared by the compiler: the engine's declarations of PnetCDF and the real header. Nothing here runs.
#include "backends/pnetcdf_library.hpp"

#include <pnetcdf.h>
#include <type_traits>

namespace {

using namespace sonde::backends;

static_assert(sizeof(MPI_Offset) == sizeof(NcSize) && std::is_signed_v<MPI_Offset>);

// Both have parameters of the same types, but for the name of MPI_Offset.
template <class T>
struct WithoutAlias {
    using type = T;
};
template <>
struct WithoutAlias<const MPI_Offset*> {
    using type = const NcSize*;
};
template <>
struct WithoutAlias<MPI_Offset*> {
    using type = NcSize*;
};
template <class Function>
struct Signature;
template <class Result, class... Parameters>
struct Signature<Result (*)(Parameters...)> {
    using type = Result (*)(typename WithoutAlias<Parameters>::type...);
};

#define COMPARE(name) \
    static_assert(std::is_same_v<decltype(PnetcdfFunctions::name), Signature<decltype(&ncmpi_##name)>::type>, #name)
COMPARE(strerror);
COMPARE(inq_libvers);
COMPARE(def_dim);
COMPARE(def_var);
COMPARE(enddef);
COMPARE(inq_varid);
COMPARE(inq_vartype);
COMPARE(inq_varndims);
COMPARE(inq_vardimid);
COMPARE(inq_dimlen);
COMPARE(begin_indep_data);
COMPARE(end_indep_data);
COMPARE(sync);
COMPARE(close);
COMPARE(put_vara_schar);
COMPARE(put_vara_schar_all);
COMPARE(get_vara_schar);
COMPARE(get_vara_schar_all);
static_assert(std::is_same_v<decltype(&ncmpi_create), int (*)(MPI_Comm, const char*, int, MPI_Info, int*)>);
static_assert(std::is_same_v<decltype(&ncmpi_open), int (*)(MPI_Comm, const char*, int, MPI_Info, int*)>);

static_assert(nc_read_only == NC_NOWRITE && nc_read_write == NC_WRITE && nc_truncate == NC_CLOBBER);
static_assert(nc_exclusive == NC_NOCLOBBER && nc_offsets_64_bit == NC_64BIT_OFFSET && nc_byte == NC_BYTE);
static_assert(nc_unlimited == NC_UNLIMITED && nc_file_exists == NC_EEXIST && nc_no_netcdf == NC_ENOTNC);
static_assert(nc_no_access == NC_EACCESS && nc_no_file == NC_ENOENT && nc_no_space == NC_ENO_SPACE);
static_assert(nc_over_quota == NC_EQUOTA);

}  // namespace
