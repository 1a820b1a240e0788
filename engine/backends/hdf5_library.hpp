// SPDX-License-Identifier: Apache-2.0
// HDF5, loaded at run time: the engine builds and runs where it is not installed. The declarations are those of
// HDF5 1.10 and later; tests/engine/formats compares them with the real header.
#pragma once

#include "backends/format_library.hpp"

#include <cstdint>
#include <string>

namespace sonde::backends {

using HdfId = std::int64_t;          ///< hid_t; below zero: the call failed
using HdfSize = unsigned long long;  ///< hsize_t

constexpr HdfId hdf_default = 0;  ///< H5P_DEFAULT, H5E_DEFAULT
constexpr unsigned hdf_read_only = 0x0000U, hdf_read_write = 0x0001U, hdf_truncate = 0x0002U, hdf_exclusive = 0x0004U;
constexpr int hdf_select_set = 0;       ///< H5S_SELECT_SET
constexpr int hdf_collective = 1;       ///< H5FD_MPIO_COLLECTIVE
constexpr int hdf_scope_local = 0;      ///< H5F_SCOPE_LOCAL
constexpr int hdf_innermost_first = 0;  ///< H5E_WALK_UPWARD

/// H5E_error2_t.
struct HdfError {
    HdfId error_class, major, minor;
    unsigned source_line;
    const char* function;
    const char* source_file;
    const char* description;
};

/// The functions of HDF5 that are called, by their names without H5.
struct Hdf5Functions {
    int (*open)() = nullptr;
    int (*dont_atexit)() = nullptr;
    int (*get_libversion)(unsigned*, unsigned*, unsigned*) = nullptr;
    int (*Eset_auto2)(HdfId, int (*)(HdfId, void*), void*) = nullptr;
    int (*Ewalk2)(HdfId, int, int (*)(unsigned, const HdfError*, void*), void*) = nullptr;
    HdfId (*Fcreate)(const char*, unsigned, HdfId, HdfId) = nullptr;
    HdfId (*Fopen)(const char*, unsigned, HdfId) = nullptr;
    int (*Fflush)(HdfId, int) = nullptr;
    int (*Fclose)(HdfId) = nullptr;
    HdfId (*Dcreate2)(HdfId, const char*, HdfId, HdfId, HdfId, HdfId, HdfId) = nullptr;
    HdfId (*Dopen2)(HdfId, const char*, HdfId) = nullptr;
    HdfId (*Dget_space)(HdfId) = nullptr;
    HdfId (*Dget_type)(HdfId) = nullptr;
    int (*Dwrite)(HdfId, HdfId, HdfId, HdfId, HdfId, const void*) = nullptr;
    int (*Dread)(HdfId, HdfId, HdfId, HdfId, HdfId, void*) = nullptr;
    int (*Dclose)(HdfId) = nullptr;
    HdfId (*Screate_simple)(int, const HdfSize*, const HdfSize*) = nullptr;
    int (*Sselect_hyperslab)(HdfId, int, const HdfSize*, const HdfSize*, const HdfSize*, const HdfSize*) = nullptr;
    long long (*Sget_simple_extent_npoints)(HdfId) = nullptr;
    int (*Sclose)(HdfId) = nullptr;
    std::size_t (*Tget_size)(HdfId) = nullptr;
    int (*Tclose)(HdfId) = nullptr;
    HdfId (*Pcreate)(HdfId) = nullptr;
    int (*Pclose)(HdfId) = nullptr;
    int (*Pset_alignment)(HdfId, HdfSize, HdfSize) = nullptr;
    int (*Pset_chunk)(HdfId, int, const HdfSize*) = nullptr;
    int (*Pset_dxpl_mpio)(HdfId, int) = nullptr;
    int (*Pset_all_coll_metadata_ops)(HdfId, bool) = nullptr;
    int (*Pset_coll_metadata_write)(HdfId, bool) = nullptr;
    void* Pset_fapl_mpio = nullptr;  ///< takes a communicator, so the MPI module calls it
};

struct Hdf5Library {
    Hdf5Functions call;
    HdfId file_access = -1, dataset_transfer = -1, dataset_create = -1;  ///< classes of property lists
    HdfId element_type = -1;                                             ///< H5T_NATIVE_LLONG
    std::string version;                                                 ///< "1.10.8"

    /// Message of the innermost failed call, in one line; empty when HDF5 reports none.
    std::string describe_last_error() const;
};

/// Loads HDF5 once for the process. Throws std::runtime_error with one sentence where no fitting library is.
const Hdf5Library& load_hdf5();
/// Why load_hdf5() would fail; empty when it would not. Starts nothing.
std::string explain_missing_hdf5();

}  // namespace sonde::backends
