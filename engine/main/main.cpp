// SPDX-License-Identifier: Apache-2.0
// The command line of the engine: the thinnest layer.
#include "dialects/dialect.hpp"
#include "main/commands.hpp"
#include "phases/outcome.hpp"
#include "records/text.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include <algorithm>
#include <array>
#include <string_view>

namespace {

/// The commands there are, in words.
std::string commands() {
    std::string words = "use run, resolve, touched, backends, clean, probe";
    for (const sonde::dialects::Dialect* dialect : sonde::dialects::list()) {
        words += ", " + std::string(dialect->name);
    }
    return words;
}

/// What is wrong with the command line, in one sentence that says where to read on.
std::string explain(const CLI::App& app, const CLI::ParseError& error) {
    const std::vector<CLI::App*> parsed = app.get_subcommands();
    const std::string command = parsed.empty() ? std::string() : parsed.front()->get_name();
    const std::vector<std::string> unknown = app.remaining(true);
    std::string what = error.what();
    if (command.empty() && !unknown.empty()) {
        what = "there is no command " + unknown.front() + ": " + commands();
    } else if (command.empty()) {
        what = "a command is missing: " + commands();
    } else if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr && !unknown.empty()) {
        const bool option = unknown.front().starts_with('-') && unknown.front() != "-";
        what = command + (option ? " has no option " : " takes no further argument ") + unknown.front();
    } else if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
        what = command + ": " + what;
    } else if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
        what = command + ": " + what.substr(0, what.find(':')) + " needs a value after it";
    }
    return what + "; `sonde-engine " + (command.empty() ? "" : command + " ") + "--help` explains";
}

/// Reads the words and calls the command they name.
int dispatch(int argc, char** argv) {
    // Under the name of a tool (`ln -s sonde-engine ior`) the engine is that tool.
    const std::string_view called = argc > 0 ? std::string_view(argv[0]) : std::string_view();
    const std::string_view name = called.substr(called.rfind('/') + 1);
    if (const sonde::dialects::Dialect* dialect = sonde::dialects::find(name)) {
        std::vector<std::string> words{argv, argv + argc};
        words.insert(words.begin() + 1, std::string(name));
        return sonde::command_dialect(*dialect, words);
    }
    if (argc > 1) {
        if (const sonde::dialects::Dialect* dialect = sonde::dialects::find(argv[1])) {
            return sonde::command_dialect(*dialect, {argv, argv + argc});
        }
    }
    CLI::App app{"sonde-engine runs one plan, times it, and writes one record (NDJSON).", "sonde-engine"};
    std::string footer;
    for (const sonde::dialects::Dialect* dialect : sonde::dialects::list()) {
        footer += (footer.empty() ? "COMMAND LINES OF OTHER TOOLS:\n  " : "\n  ") + std::string(dialect->name) + ": " +
                  std::string(dialect->summary);
    }
    app.footer(footer);
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
            return plain ? std::string()
                         : "is " + id +
                               ", but must be 1 to 200 letters, digits, '_', '.' or '-', not beginning with a dot";
        });
    run_command
        ->add_option("--stage", run.stage, "run only this stage; stages begin at phases with process = \"separate\"")
        ->check([](const std::string& text) {
            const bool number =
                !text.empty() && text.size() <= 4 && text.find_first_not_of("0123456789") == std::string::npos;
            return number ? std::string() : text + " is not the number of a stage, counted from 0";
        });
    run_command->add_option("--launch", run.launch, "how the processes come together")
        ->check([](const std::string& text) {
            constexpr std::array known{"auto", "single", "forked", "node", "mpi"};
            const bool good = std::find(known.begin(), known.end(), text) != known.end();
            return good ? std::string() : text + " is not known: use auto, single, forked, node or mpi";
        });
    run_command->add_option("--mpi-module", run.mpi_module, "MPI module to load instead of the one beside the engine");
    run_command->add_flag("--dry-run", run.dry_run, "check the plan and say what it would do");

    sonde::ResolveArguments question;
    CLI::App* resolve = app.add_subcommand("resolve", "Say as JSON what a plan means and what it would touch");
    resolve->add_option("plan", question.plan, "plan as JSON; - reads standard input")->required();
    resolve->add_flag("--lines", question.lines,
                      "each line is an object: plan, and if wanted processes, nodes, node_memory_bytes");
    resolve->add_flag("--order", question.order, "count every access, and say a number that stands for their order");

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
        if (error.get_exit_code() == 0) {
            return app.exit(error);  // --help, --version
        }
        sonde::records::complain(explain(app, error));
        return sonde::phases::exit_plan;
    }
    if (run_command->parsed()) {
        return sonde::command_run(run);
    }
    if (resolve->parsed()) {
        return sonde::command_resolve(question);
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

}  // namespace

int main(int argc, char** argv) {
    try {
        return dispatch(argc, argv);
    } catch (const std::exception& error) {
        // Nothing is expected to come here; if it does, it is not a reason to abort.
        sonde::records::complain(error.what());
    } catch (...) {
        static_cast<void>(std::fputs("sonde-engine: an unknown failure\n", stderr));
    }
    return sonde::phases::exit_environment;
}
