// SPDX-License-Identifier: Apache-2.0
#include "backends/hdf5_library.hpp"

#include "backends/runtime_library.hpp"

#include <dlfcn.h>
#include <algorithm>
#include <stdexcept>
#include <vector>

namespace sonde::backends {
namespace {

const FormatLibrarySearch hdf5_search{
    .title = "HDF5",
    .variable = "SONDE_HDF5_LIBRARY",
    .names = {"libhdf5", "libhdf5_parallel"},
    .openmpi_names = {"libhdf5_openmpi"},
    .mpich_names = {"libhdf5_mpich"},
    .versions = {".so.320", ".so.310", ".so.200", ".so.103", ".so.101", ".so"},
    .parallel_function = "H5Pset_fapl_mpio",
    .package = "libhdf5-openmpi-dev",
};

std::vector<RuntimeFunction> list_functions(Hdf5Functions& f) {
    return {
        {"H5open", &f.open},
        {"H5dont_atexit", &f.dont_atexit},
        {"H5get_libversion", &f.get_libversion},
        {"H5Eset_auto2", &f.Eset_auto2},
        {"H5Ewalk2", &f.Ewalk2},
        {"H5Fcreate", &f.Fcreate},
        {"H5Fopen", &f.Fopen},
        {"H5Fflush", &f.Fflush},
        {"H5Fclose", &f.Fclose},
        {"H5Dcreate2", &f.Dcreate2},
        {"H5Dopen2", &f.Dopen2},
        {"H5Dget_space", &f.Dget_space},
        {"H5Dget_type", &f.Dget_type},
        {"H5Dwrite", &f.Dwrite},
        {"H5Dread", &f.Dread},
        {"H5Dclose", &f.Dclose},
        {"H5Screate_simple", &f.Screate_simple},
        {"H5Sselect_hyperslab", &f.Sselect_hyperslab},
        {"H5Sget_simple_extent_npoints", &f.Sget_simple_extent_npoints},
        {"H5Sclose", &f.Sclose},
        {"H5Tget_size", &f.Tget_size},
        {"H5Tclose", &f.Tclose},
        {"H5Pcreate", &f.Pcreate},
        {"H5Pclose", &f.Pclose},
        {"H5Pset_alignment", &f.Pset_alignment},
        {"H5Pset_chunk", &f.Pset_chunk},
        {"H5Pset_dxpl_mpio", &f.Pset_dxpl_mpio},
        {"H5Pset_all_coll_metadata_ops", &f.Pset_all_coll_metadata_ops},
        {"H5Pset_coll_metadata_write", &f.Pset_coll_metadata_write},
        {"H5Pset_fapl_mpio", &f.Pset_fapl_mpio},
    };
}

/// An identifier that HDF5 keeps in a variable, valid after H5open().
HdfId read_identifier(void* handle, const char* name) {
    const void* variable = dlsym(handle, name);
    return variable != nullptr ? *static_cast<const HdfId*>(variable) : -1;
}

Hdf5Library open_hdf5() {
    const FormatLibrary located_library = find_format_library(hdf5_search);
    if (located_library.handle == nullptr) {
        throw std::runtime_error(located_library.missing_reason);
    }
    Hdf5Library library;
    if (const char* missing = bind_functions(located_library.handle, list_functions(library.call));
        missing != nullptr) {
        throw std::runtime_error(located_library.file + " has no " + missing +
                                 ": Sonde needs HDF5 1.10 or later; name a newer one in SONDE_HDF5_LIBRARY");
    }
    // MPI_Finalize() ends HDF5. At exit, after a failed run, HDF5 would wait for tasks that are gone, or crash. Before
    // any other call, because the first one starts HDF5, which decides then.
    // bind_functions() has set all pointers. NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage)
    library.call.dont_atexit();
    unsigned major = 0, minor = 0, release = 0;
    library.call.get_libversion(&major, &minor, &release);
    library.version = std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(release);
    if (library.call.open() < 0) {
        throw std::runtime_error(located_library.file + " (HDF5 " + library.version + ") cannot be started");
    }
    library.call.Eset_auto2(hdf_default, nullptr, nullptr);
    library.file_access = read_identifier(located_library.handle, "H5P_CLS_FILE_ACCESS_ID_g");
    library.dataset_transfer = read_identifier(located_library.handle, "H5P_CLS_DATASET_XFER_ID_g");
    library.dataset_create = read_identifier(located_library.handle, "H5P_CLS_DATASET_CREATE_ID_g");
    library.element_type = read_identifier(located_library.handle, "H5T_NATIVE_LLONG_g");
    if (std::min({library.file_access, library.dataset_transfer, library.dataset_create, library.element_type}) < 0) {
        throw std::runtime_error(located_library.file + " (HDF5 " + library.version +
                                 ") lacks its predefined identifiers: name another in SONDE_HDF5_LIBRARY");
    }
    return library;
}

/// H5Ewalk2: keeps the two innermost messages, of which the second often names the cause in MPI's words.
int append_description(unsigned depth, const HdfError* error, void* text) {
    std::string& message = *static_cast<std::string*>(text);
    if (depth < 2 && error->description != nullptr && *error->description != '\0') {
        message += (message.empty() ? "" : "; ") + std::string(error->description);
    }
    return 0;
}

}  // namespace

std::string Hdf5Library::describe_last_error() const {
    std::string message;
    call.Ewalk2(hdf_default, hdf_innermost_first, append_description, &message);
    return message;
}

const Hdf5Library& load_hdf5() {
    static const Hdf5Library library = open_hdf5();
    return library;
}

std::string explain_missing_hdf5() {
    return find_format_library(hdf5_search).missing_reason;
}

}  // namespace sonde::backends
