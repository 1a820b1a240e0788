// SPDX-License-Identifier: Apache-2.0
// The files below DIR/.sonde, which are not in the store: the machine's faults, for reading and writing; counters of
// its servers, as in Lustre's files; and a description of the mount.
#pragma once

#include "mounted/store.hpp"

#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace sonde::simulate {

struct ControlFile {
    std::string name;
    ControlFile* parent = nullptr;
    std::vector<ControlFile*> entries;                 ///< of a directory
    std::function<std::string()> text;                 ///< content; empty: a directory, or not readable
    std::function<void(std::string_view)> write_line;  ///< handles one written line; throws SystemModelError
    Inode inode;
};

class ControlFiles {
 public:
    /// `describe_mount` returns the content of mount.json. The first `nodes` nodes of the machine have files.
    ControlFiles(RealTimeMachine& driver, std::uint32_t nodes, std::function<std::string()> describe_mount);
    ControlFile& root() { return files_.front(); }
    static ControlFile* find(ControlFile& directory, std::string_view name);

    /// The attributes of stat(2). Sizes are 0, like those of files in /proc.
    static struct stat get_attributes(const ControlFile& file);

 private:
    ControlFile& add(const std::string& path);
    void switch_fault(std::string_view line);
    std::string format_faults();

    RealTimeMachine& machine_;
    double epoch_;
    std::deque<ControlFile> files_;  ///< the first is the root directory
};

}  // namespace sonde::simulate
