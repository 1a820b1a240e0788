// SPDX-License-Identifier: Apache-2.0
// Finds and loads the MPI module for this machine.
#pragma once

#include "ranks/mpi_interface.hpp"

#include <string>
#include <vector>

namespace sonde::ranks {

/// The flavor to try first. The launcher of Open MPI and PMIx servers need the site's MPI library; the standard ABI
/// suits all others.
enum class ModulePreference { standard, site };

struct ModuleSearch {
    std::string required_path;  ///< path of the only module to try; empty = search
    ModulePreference preference = ModulePreference::standard;
    std::vector<std::string> folders;  ///< directories to search
    bool is_probe = false;  ///< no run follows: the symbols stay hidden, so that other modules can be tried too
};

/// Searches SONDE_MPI_MODULE when set, else the directory of the engine and ../lib/sonde.
ModuleSearch default_search(const std::string& required_path, ModulePreference preference);

/// Loads a module, which stays loaded, without starting MPI. Throws TeamError with the modules that were tried and the
/// reasons.
const SondeMpiModule* load_module(const ModuleSearch& search);

/// The module with which this process runs; null without one.
const SondeMpiModule* running_module();

/// MPI must not be stopped in this process any more: a library that MPI ends with itself would crash.
void forbid_stop();
bool may_stop();

/// Empty when a module can be loaded here; otherwise one sentence with the reason and a remedy.
std::string explain_missing_mpi();

}  // namespace sonde::ranks
