// SPDX-License-Identifier: Apache-2.0
// What the program can be asked to do. Each returns an exit code (phases/outcome.hpp) and prints one sentence on
// failure.
#pragma once

#include <string>
#include <vector>

namespace sonde {

struct RunArguments {
    std::string plan;  ///< file, or "-" for standard input
    std::string record, run_id, launch = "auto", mpi_module, command;
    int stage = -1;
    bool dry_run = false;
};

struct ResolveArguments {
    std::string plan;    ///< file, or "-" for standard input
    bool lines = false;  ///< each line of it is a request of its own
    bool order = false;  ///< also what stands for every access in its order
};

struct CleanArguments {
    std::string directory;
    bool dry_run = false;
    bool json = false;
    bool elsewhere = false;  ///< also what runs of other hosts left, which cannot be asked whether they have ended
};

namespace dialects {
struct Dialect;
}

int command_run(const RunArguments& arguments);
/// `sonde-engine NAME words…`: the words are those of another tool, besides Sonde's own `--sonde-…`.
int command_dialect(const dialects::Dialect& dialect, const std::vector<std::string>& words);
/// One line of JSON a plan: the plan with nothing left to a default, and what each phase would touch.
int command_resolve(const ResolveArguments& arguments);
int command_touched(const std::string& plan_file);
int command_backends(bool json, const std::string& directory);
int command_clean(const CleanArguments& arguments);
int command_probe(const std::string& directory);

}  // namespace sonde
