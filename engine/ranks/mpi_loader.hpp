// SPDX-License-Identifier: Apache-2.0
// Finds and opens the MPI module that fits this machine.
#pragma once

#include "ranks/mpi_module.hpp"

#include <string>
#include <vector>

namespace sonde::ranks {

/// Which flavour to try first. Open MPI's launcher and PMIx servers want the site's own library; everything else is
/// served best by the standard ABI.
enum class Prefer { standard, site };

struct ModuleSearch {
    std::string only;  ///< a path: nothing else is tried; empty = search
    Prefer prefer = Prefer::standard;
    std::vector<std::string> folders;  ///< where to look
};

/// The usual search: SONDE_MPI_MODULE when set, else beside the engine and in ../lib/sonde.
ModuleSearch usual_search(const std::string& only, Prefer prefer);

/// Loads a module and leaves it loaded. MPI itself is not started. Throws TeamError that says what was tried and why it
/// failed.
const SondeMpiModule* load_module(const ModuleSearch& search);

}  // namespace sonde::ranks
