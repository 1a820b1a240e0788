// SPDX-License-Identifier: Apache-2.0
// The commands of the program. Each returns an exit code (phases/outcome.hpp) and prints one sentence on failure.
#pragma once

#include <string>
#include <vector>

namespace sonde {

struct RunArguments {
    std::string plan;  ///< file, or "-" for standard input
    std::string record, run_id, launch = "auto", mpi_module, command;
    int stage = -1;
    bool dry_run = false;
    std::string allow_device;
    bool destroy = false;
};

struct ResolveArguments {
    std::string plan;    ///< file, or "-" for standard input
    bool lines = false;  ///< each line of the plan file is a request
    bool order = false;  ///< also compute the hash of all accesses in order
};

struct CleanArguments {
    std::string directory;
    bool dry_run = false;
    bool json = false;
    bool outside = false;    ///< also in directories outside `directory` that a run names
    bool elsewhere = false;  ///< also files of runs on other hosts, whose end cannot be checked
};

struct SshArguments {
    std::string hosts;                                                ///< separated by commas
    std::string shell = "ssh -o BatchMode=yes -o ConnectTimeout=10";  ///< program and options, separated by spaces
    int processes = 1;
    std::vector<std::string> command;  ///< arguments of the engine on each host
};

namespace dialects {
struct Dialect;
}

int command_run(const RunArguments& arguments);
/// `sonde-engine NAME arguments…`: the arguments of another tool, and options `--sonde-…`.
int command_dialect(const dialects::Dialect& dialect, const std::vector<std::string>& arguments);
/// Prints one line of JSON per plan: the resolved plan, and the files and bytes of each phase.
int command_resolve(const ResolveArguments& arguments);
int command_accesses(const std::string& plan_file);
/// Prints the JSON Schema of plans.
int command_schema();
int command_backends(bool json, const std::string& directory);
int command_clean(const CleanArguments& arguments);
int command_probe(const std::string& directory);
/// Starts the engine on several hosts over ssh.
int command_ssh(const SshArguments& arguments);

}  // namespace sonde
