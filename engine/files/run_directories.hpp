// SPDX-License-Identifier: Apache-2.0
// The directories that hold the files of a run, opened once and held.
#pragma once

#include "files/confined_directory.hpp"
#include "files/file_map.hpp"

#include <map>
#include <string>
#include <vector>

namespace sonde::files {

/// The run directory, and the run's directory in each of `plan::Files::across`.
struct RunDirectories {
    ConfinedDirectory root;
    /// In the order of `across`. Not open with error() ENOENT: never made, or removed already.
    std::vector<ConfinedDirectory> other_targets;
};

/// Opens what a manifest names besides its own directory, which is open. Follows symbolic links in the paths of
/// `across`, which the plan gave, but not in the last component, which the run made.
RunDirectories open_run_directories(ConfinedDirectory root, const plan::Files& files);

/// Opens the directory of each data file of a run, each directory once as long as tasks come in order. Not for files in
/// place (plan::Files::in_place), whose directories the run does not make.
class FileDirectories {
 public:
    /// `map` must outlive this object.
    explicit FileDirectories(const FileMap& map) : map_(map) {}
    /// The directory of a task's files; not open when it is missing or a link leads there (error()). Valid until the
    /// next call.
    const ConfinedDirectory& directory_of(int task);

 private:
    const FileMap& map_;
    std::map<std::string, ConfinedDirectory> roots_;
    ConfinedDirectory folder_;
    std::string folder_path_;
};

/// Opens directories below another one, and holds the last one: neighbors in a tree share their parent.
class LastSubdirectory {
 public:
    /// `root` must outlive this object.
    explicit LastSubdirectory(const ConfinedDirectory& root) : root_(root) {}
    /// `relative` may be empty: the root itself. Valid until the next call.
    const ConfinedDirectory& open_subdirectory(const std::string& relative);
    /// Status of what has a path of several components; of a link, the link itself. 0 or -errno.
    int status(const std::string& relative, struct stat& into);
    /// Makes a directory with several components, whose parents exist. 0 or -errno.
    int make_directory(const std::string& relative, mode_t mode);

 private:
    const ConfinedDirectory& open_parent_directory(const std::string& relative);

    const ConfinedDirectory& root_;
    ConfinedDirectory last_;
    std::string relative_;
};

}  // namespace sonde::files
