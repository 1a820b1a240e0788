// SPDX-License-Identifier: Apache-2.0
// Names a run and makes its directories.
#pragma once

#include "files/confined_directory.hpp"
#include "files/file_map.hpp"
#include "plan/plan.hpp"

#include <string>

namespace sonde::runs {

/// The default name of a run: time (UTC), `name` and the number of this process, "20261121T214554Z-quick-8732".
std::string make_run_id(const std::string& name);

struct RunDirectory {
    files::ConfinedDirectory directory;
    bool existed_before = false;  ///< it existed and was not created by a run, so it must not be removed
};
/// Creates the run directory. Throws when it exists and target.use_existing is not set, or when another run uses it.
/// Nobody but the caller can write to a directory that is made here, whatever the umask.
RunDirectory make_run_directory(const plan::Plan& plan, const std::string& run_id);
/// Makes the directories in which the data files lie, below the run directory and in other targets
/// (plan::Files::across). `may_exist`: an earlier stage of the run has made them. Throws EnvironmentError.
void make_directories_of_files(const files::ConfinedDirectory& run_root, const files::FileMap& map, bool may_exist);

}  // namespace sonde::runs
