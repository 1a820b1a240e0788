// SPDX-License-Identifier: Apache-2.0
// The file of the record, which may be in a folder that other users may write. Its folder is opened once and held; no
// symbolic link is followed in the last two components, and a file that exists must be the caller's own.
#pragma once

#include "files/confined_directory.hpp"
#include "files/descriptor.hpp"

#include <string>

namespace sonde::files {

class RecordFile {
 public:
    /// Opens `path` for appending and creates it when it is missing; "-" = standard output, empty = no file. Throws
    /// std::runtime_error with one sentence.
    static RecordFile open(const std::string& path);

    /// Opens the same file once more, as another open file description; readable where it is a regular file. Throws
    /// when its name now refers to another file.
    RecordFile reopen() const;
    /// Removes the name if it still refers to this file.
    void remove() const;

    int descriptor() const { return *descriptor_; }
    const std::string& path() const { return path_; }
    /// Whether open() created it.
    bool is_new() const { return is_new_; }

 private:
    explicit RecordFile(std::string path) : path_(std::move(path)) {}
    void open_beneath_folder();
    int open_existing(int access);
    bool has_name() const { return !name_.empty(); }

    std::string path_;
    ConfinedDirectory folder_;
    std::string name_;  ///< in the folder; empty: no file, or a descriptor of the caller
    Descriptor descriptor_{-1};
    bool is_new_ = false;
};

}  // namespace sonde::files
