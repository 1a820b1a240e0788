// SPDX-License-Identifier: Apache-2.0
// Before the first byte: is the plan possible here, and is there room.
#pragma once

#include "plan/plan.hpp"
#include "records/file_system.hpp"

#include <cstdint>
#include <stdexcept>
#include <string>

namespace sonde::runs {

/// The machine cannot run the plan. what() is one sentence. Exit code 3.
struct EnvironmentError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Checks that the backends of a plan can run on this machine. Throws EnvironmentError.
void check_machine(const plan::Plan& plan);
/// Whether any phase needs files on the target.
bool needs_files(const plan::Plan& plan);
/// Checks that the target is an existing directory. Throws plan::PlanError.
void check_directory(const std::string& path);
/// Explains a file system with a size of 0 bytes: "proc, which is no file system for data: …".
std::string describe_zero_size(const records::FileSystem& fs);
/// Checks that the target is writable, has space for `bytes` more bytes, and supports the requested direct I/O.
void check_target(const plan::Plan& plan, std::uint64_t bytes, std::uint64_t files);
/// The same for each directory of data.files.across, with its share of the bytes and files.
void check_room_across_targets(const plan::Plan& plan, std::uint64_t bytes, std::uint64_t files);

}  // namespace sonde::runs
