// SPDX-License-Identifier: Apache-2.0
// Before the first byte: is the plan possible here, is there room, and the files that several tasks share.
#pragma once

#include "phases/run.hpp"
#include "plan/parse.hpp"

#include <stdexcept>

namespace sonde::phases {

/// The machine does not allow what the plan asks. what() is one sentence. Exit code 3.
struct EnvironmentError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Backends exist, can run here and can do what each phase asks. Throws plan::PlanError or EnvironmentError.
void check_backends(const plan::Plan& plan, bool check_machine);
/// True when any phase needs files on the target.
bool needs_files(const plan::Plan& plan);
/// The target exists and is a directory. Throws plan::PlanError.
void check_directory(const std::string& path);
/// Target is writable, has room for `bytes` more, and can do direct I/O with the asked alignment.
void check_target(const plan::Plan& plan, std::uint64_t bytes, std::uint64_t files);
struct RunDirectory {
    std::string path;
    bool found = false;  ///< it was there, and no run of Sonde had made it: it must stay
};
/// Makes the run directory (and refuses one that exists unless allowed, or that another run is using).
RunDirectory make_run_directory(const plan::Plan& plan, const std::string& run_id);

/// Untimed work of one process before a writing phase: removes what an earlier phase left when the phase starts from
/// empty files, and makes the files that several tasks share. Returns one sentence, empty when all is well.
std::string prepare_files(const Context& context, std::size_t index, const Layout& layout);

/// "ENOSPC" for 28, "E28" for names not in the list.
std::string errno_name(int code);

}  // namespace sonde::phases
