// SPDX-License-Identifier: Apache-2.0
// The command line of the engine: the thinnest layer.
#include "main/commands.hpp"
#include "phases/run.hpp"

#include <CLI/CLI.hpp>

int main(int argc, char** argv) {
    CLI::App app{"sonde-engine runs one plan, times it, and writes one record (NDJSON).", "sonde-engine"};
    app.set_version_flag("--version", "sonde-engine " SONDE_VERSION);
    app.require_subcommand(1);

    sonde::RunArguments run;
    for (int i = 0; i < argc; ++i) {
        run.command += (i > 0 ? " " : "") + std::string(argv[i]);
    }
    CLI::App* run_command = app.add_subcommand("run", "Run a plan");
    run_command->add_option("plan", run.plan, "plan as JSON (schema sonde-plan/1); - reads standard input")->required();
    run_command->add_option("--record", run.record, "append the record to this file; - writes it to standard output");
    run_command->add_option("--run-id", run.run_id, "name of the run; default: time, plan and process number")
        ->check([](const std::string& id) {
            const bool plain =
                !id.empty() && id.size() <= 200 && id[0] != '.' &&
                id.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") ==
                    std::string::npos;
            return plain ? std::string() : std::string("must be letters, digits, '_', '.' or '-'");
        });
    run_command
        ->add_option("--stage", run.stage, "run only this stage; stages begin at phases with process = \"separate\"")
        ->check(CLI::Range(0, 10000));
    run_command->add_option("--launch", run.launch, "how the processes come together")
        ->check(CLI::IsMember({"auto", "single", "forked", "node", "mpi"}));
    run_command->add_option("--mpi-module", run.mpi_module, "MPI module to load instead of the one beside the engine");
    run_command->add_flag("--dry-run", run.dry_run, "check the plan and say what it would do");

    std::string plan_file;
    CLI::App* touched =
        app.add_subcommand("touched", "List every (phase, task, file, offset, length) of a plan as NDJSON");
    touched->add_option("plan", plan_file, "plan as JSON")->required();

    bool json = false;
    std::string directory;
    CLI::App* backends = app.add_subcommand("backends", "List the backends and whether they can run here");
    backends->add_flag("--json", json, "machine-readable");
    backends->add_option("--on", directory, "ask for this directory");

    sonde::CleanArguments sweep;
    CLI::App* clean = app.add_subcommand("clean", "Remove what killed runs left below a directory, and nothing else");
    clean->add_option("directory", sweep.directory, "the target of the runs")->required();
    clean->add_flag("--dry-run", sweep.dry_run, "only say what would be removed");
    clean->add_flag("--elsewhere", sweep.elsewhere,
                    "also what runs on other hosts left; only when you know that they have ended");
    clean->add_flag("--json", sweep.json, "machine-readable");

    CLI::App* probe = app.add_subcommand("probe", "Describe this node and the file system of a directory as JSON");
    probe->add_option("directory", directory, "directory on the file system")->required();

    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? sonde::phases::exit_done : sonde::phases::exit_plan;
    }
    if (run_command->parsed()) {
        return sonde::command_run(run);
    }
    if (touched->parsed()) {
        return sonde::command_touched(plan_file);
    }
    if (backends->parsed()) {
        return sonde::command_backends(json, directory);
    }
    if (clean->parsed()) {
        return sonde::command_clean(sweep);
    }
    return probe->parsed() ? sonde::command_probe(directory) : sonde::phases::exit_plan;
}
