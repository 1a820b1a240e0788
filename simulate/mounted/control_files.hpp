// SPDX-License-Identifier: Apache-2.0
// The files below DIR/.sonde, which are in no store: what is wrong with the machine, read and told; what its servers
// count, in the form of Lustre's files; and what the mount is.
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
    std::vector<ControlFile*> entries;           ///< of a directory
    std::function<std::string()> text;           ///< what is read; empty: a directory, or nothing to read
    std::function<void(std::string_view)> take;  ///< one line that is written; throws SiteError with a sentence
    Inode inode;
};

class ControlFiles {
 public:
    /// `about` gives the content of mount.json; of the machine's nodes the first `nodes` have files.
    ControlFiles(Pace& pace, std::uint32_t nodes, std::function<std::string()> about);
    ControlFile& root() { return files_.front(); }
    static ControlFile* find(ControlFile& directory, std::string_view name);

    /// What stat() says: sizes are 0, as those of files in /proc.
    static struct stat attributes_of(const ControlFile& file);

 private:
    ControlFile& add(const std::string& path);
    void tell_fault(std::string_view line);
    std::string faults_text();

    Pace& pace_;
    double epoch_;
    std::deque<ControlFile> files_;  ///< the first one is the directory itself
};

}  // namespace sonde::simulate
