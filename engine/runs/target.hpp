// SPDX-License-Identifier: Apache-2.0
// Before the first byte: is the plan possible here, is there room, and the directory of the run.
#pragma once

#include "plan/parse.hpp"
#include "records/file_system.hpp"

#include <cstdint>
#include <stdexcept>
#include <string>

namespace sonde::runs {

/// The machine does not allow what the plan asks. what() is one sentence. Exit code 3.
struct EnvironmentError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// The backends of a plan can run on this machine. Throws EnvironmentError.
void check_machine(const plan::Plan& plan);
/// True when any phase needs files on the target.
bool needs_files(const plan::Plan& plan);
/// The target exists and is a directory. Throws plan::PlanError.
void check_directory(const std::string& path);
/// What kind of file system has a size of 0 bytes, and what to do: "proc, which is no file system for data: …".
std::string without_room(const records::FileSystem& fs);
/// Target is writable, has room for `bytes` more, and can do direct I/O with the asked alignment.
void check_target(const plan::Plan& plan, std::uint64_t bytes, std::uint64_t files);
/// The same of each directory that the files lie in (data.files.across), each with its share of the bytes and files.
void check_across(const plan::Plan& plan, std::uint64_t bytes, std::uint64_t files);
struct RunDirectory {
    std::string path;
    bool found = false;  ///< it was there, and no run of Sonde had made it: it must stay
};
/// Makes the run directory (and refuses one that exists unless allowed, or that another run is using).
RunDirectory make_run_directory(const plan::Plan& plan, const std::string& run_id);

}  // namespace sonde::runs
