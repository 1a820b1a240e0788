// SPDX-License-Identifier: Apache-2.0
// Compared by the compiler: the engine's declarations of HDF5 and the real header. Nothing here runs.
#include "../same_call.hpp"
#include "backends/hdf5_library.hpp"

#include <hdf5.h>
#include <cstddef>

namespace {

using namespace sonde::backends;

#define COMPARE(name) static_assert(Comparison<decltype(Hdf5Functions::name), decltype(&H5##name)>::is_same, #name)
COMPARE(open);
COMPARE(dont_atexit);
COMPARE(get_libversion);
COMPARE(Eset_auto2);
COMPARE(Ewalk2);
COMPARE(Fcreate);
COMPARE(Fopen);
COMPARE(Fflush);
COMPARE(Fclose);
COMPARE(Dcreate2);
COMPARE(Dopen2);
COMPARE(Dget_space);
COMPARE(Dget_type);
COMPARE(Dwrite);
COMPARE(Dread);
COMPARE(Dclose);
COMPARE(Screate_simple);
COMPARE(Sselect_hyperslab);
COMPARE(Sget_simple_extent_npoints);
COMPARE(Sclose);
COMPARE(Tget_size);
COMPARE(Tclose);
COMPARE(Pcreate);
COMPARE(Pclose);
COMPARE(Pset_alignment);
COMPARE(Pset_chunk);
COMPARE(Pset_dxpl_mpio);
COMPARE(Pset_all_coll_metadata_ops);
COMPARE(Pset_coll_metadata_write);

static_assert(std::is_same_v<herr_t (*)(hid_t, MPI_Comm, MPI_Info), decltype(&H5Pset_fapl_mpio)>);
static_assert(sizeof(HdfId) == sizeof(hid_t) && sizeof(HdfSize) == sizeof(hsize_t) && sizeof(hbool_t) == sizeof(bool));
static_assert(hdf_select_set == H5S_SELECT_SET && hdf_collective == H5FD_MPIO_COLLECTIVE);
static_assert(hdf_scope_local == H5F_SCOPE_LOCAL && hdf_innermost_first == H5E_WALK_UPWARD);
static_assert(sizeof(HdfError) == sizeof(H5E_error2_t) &&
              offsetof(HdfError, description) == offsetof(H5E_error2_t, desc));
// H5F_ACC_… are expressions that start the library.
#undef H5CHECK
#undef H5OPEN
#define H5CHECK
#define H5OPEN
static_assert(hdf_read_only == H5F_ACC_RDONLY && hdf_read_write == H5F_ACC_RDWR && hdf_truncate == H5F_ACC_TRUNC &&
              hdf_exclusive == H5F_ACC_EXCL && hdf_default == H5P_DEFAULT && hdf_default == H5E_DEFAULT);

}  // namespace
