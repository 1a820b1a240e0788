// SPDX-License-Identifier: Apache-2.0
// Finds the library of a file format (HDF5, PnetCDF) at run time. It must call the MPI library of the run: two in one
// process know nothing of each other's communicators.
#pragma once

#include "backends/backend.hpp"
#include "ranks/mpi_interface.hpp"

#include <string>
#include <vector>

namespace sonde::backends {

struct FormatLibrarySearch {
    const char* title;                       ///< "HDF5"
    const char* variable;                    ///< environment variable that names the file of the library
    std::vector<const char*> names;          ///< of any MPI, without ".so"
    std::vector<const char*> openmpi_names;  ///< as distributions name the build for Open MPI
    std::vector<const char*> mpich_names;
    std::vector<const char*> versions;  ///< ends of file names, newest first: ".so.310"
    const char* parallel_function;      ///< only builds with MPI have it
    const char* package;                ///< what to install
};

/// A handle of dlopen(), or null and the reason in one sentence.
struct FormatLibrary {
    void* handle = nullptr;
    std::string file;  ///< "libhdf5_openmpi.so.103"
    std::string missing_reason;
};

/// Searches for the MPI of `module`.
FormatLibrary find_format_library(const FormatLibrarySearch& search, const SondeMpiModule& module);
/// The same for the MPI of this run, or, before a run, for the one that a run without a launcher would get.
FormatLibrary find_format_library(const FormatLibrarySearch& search);

/// Whether MPI-IO of this run is ompio, the default of Open MPI: its module is the running one, and OMPI_MCA_io does
/// not choose another.
bool is_ompio_used();

/// Whether there is no file of the format yet: the phase makes a new one, or somebody has made an empty one with its
/// stripes.
bool must_create_file(const OpenRequest& request);

/// Whether an operation on the file at `path`, whose result is an errno below zero, failed for want of space: Open MPI
/// 4.1 reports a write that the system refused as a short one, so that the library knows no reason (-EIO).
bool is_out_of_space(int result, const IoRequest& operation, const std::string& path);

}  // namespace sonde::backends
