// SPDX-License-Identifier: Apache-2.0
// Which files a plan has, what they are called, and which tasks share them. Names are computed, never stored, so a
// million files cost nothing.
#pragma once

#include "files/task_map.hpp"
#include "patterns/geometry.hpp"
#include "plan/plan.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace sonde::files {

/// The directories in which the files of a run lie: its own, and one of that name in each of `plan::Files::across`.
std::vector<std::string> list_root_directories(const std::string& root, const plan::Files& files);

class FileMap {
 public:
    /// `root` = the run directory.
    FileMap(std::string root, const plan::Files& files, const TaskMap& tasks);

    /// All plans but those of mapping many and of replays have one.
    int files_per_task() const { return files_.count; }
    /// Number of the k-th file of a task: unique in the run, the identity used by the payload.
    std::uint64_t file_number(int task, int k) const;
    std::string path(int task, int k) const;
    /// The parts of path(): the directory below the root, empty when the file lies in the root, and the name in it.
    std::string get_file_folder(int task) const;
    std::string file_name(int task, int k) const;
    /// True when a plan with these files makes a file of that name in that folder; false for every other name.
    bool contains_file(const std::string& folder, const std::string& name) const;
    /// True when it makes a directory of that name below the root.
    bool contains_folder(const std::string& name) const;
    /// The one of root_directories() in which a task's files lie.
    const std::string& get_root_directory(int task) const;
    patterns::FileShare share_of_task(int task) const;  ///< of a task in its files
    std::uint64_t distinct_files() const;
    /// The lowest task that uses the same files: it creates what is shared.
    bool is_first_task_of_file(int task) const;
    /// Directories below the root that must exist, parents first.
    std::vector<std::string> directories() const;
    const std::string& root_directory() const { return root_; }
    /// The run directory, and those of its name in other directories (`plan::Files::across`).
    const std::vector<std::string>& root_directories() const { return roots_; }
    const plan::Files& files() const { return files_; }

 private:
    std::string folder(int task) const;
    std::string make_listed_path(int task) const;
    int first_task_on(int node) const;

    std::string root_;
    std::vector<std::string> roots_;
    plan::Files files_;
    const TaskMap* tasks_;
};

}  // namespace sonde::files
