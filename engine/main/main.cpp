// SPDX-License-Identifier: Apache-2.0
// The command line of the engine.
#include "dialects/dialect.hpp"
#include "main/commands.hpp"
#include "main/launch_names.hpp"
#include "phases/outcome.hpp"
#include "records/text.hpp"
#include "remote/node_command.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include <functional>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace {

std::string list_commands() {
    std::string text = "use run, resolve, accesses, schema, backends, clean, probe, ssh";
    for (const sonde::dialects::Dialect* dialect : sonde::dialects::list_dialects()) {
        text += ", " + std::string(dialect->name);
    }
    return text;
}

/// One sentence about an error in the command line, with a reference to --help.
std::string explain_parse_error(const CLI::App& app, const CLI::ParseError& error) {
    const std::vector<CLI::App*> parsed = app.get_subcommands();
    const std::string command = parsed.empty() ? std::string() : parsed.front()->get_name();
    const std::vector<std::string> unknown = app.remaining(true);
    std::string message = error.what();
    if (command.empty() && !unknown.empty()) {
        message = "there is no command " + unknown.front() + ": " + list_commands();
    } else if (command.empty()) {
        message = "a command is missing: " + list_commands();
    } else if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr && !unknown.empty()) {
        const bool option = unknown.front().starts_with('-') && unknown.front() != "-";
        message = command + (option ? " has no option " : " takes no further argument ") + unknown.front();
    } else if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
        message = command + ": " + message;
    } else if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
        message = command + ": " + message.substr(0, message.find(':')) + " needs a value after it";
    }
    return message + "; `sonde-engine " + (command.empty() ? "" : command + " ") + "--help` explains";
}

/// Runs a dialect when the program name (`ln -s sonde-engine ior`) or the first argument is that of a tool.
std::optional<int> run_as_dialect(int argc, char** argv) {
    const std::string_view called = argc > 0 ? std::string_view(argv[0]) : std::string_view();
    const std::string_view name = called.substr(called.rfind('/') + 1);
    if (const sonde::dialects::Dialect* dialect = sonde::dialects::find_dialect(name)) {
        std::vector<std::string> arguments{argv, argv + argc};
        arguments.insert(arguments.begin() + 1, std::string(name));
        return sonde::command_dialect(*dialect, arguments);
    }
    if (argc > 1) {
        if (const sonde::dialects::Dialect* dialect = sonde::dialects::find_dialect(argv[1])) {
            return sonde::command_dialect(*dialect, {argv, argv + argc});
        }
    }
    return std::nullopt;
}

/// Empty for a valid run id, else the complaint after the option's name.
std::string check_run_id(const std::string& id) {
    const bool plain =
        !id.empty() && id.size() <= 200 && id[0] != '.' &&
        id.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") == std::string::npos;
    return plain ? std::string()
                 : "is " + id + ", but must be 1 to 200 letters, digits, '_', '.' or '-', not beginning with a dot";
}

std::string check_stage(const std::string& text) {
    const bool number = !text.empty() && text.size() <= 4 && text.find_first_not_of("0123456789") == std::string::npos;
    return number ? std::string() : text + " is not the number of a stage, counted from 0";
}

std::string check_launch(const std::string& name) {
    return sonde::find_launch(name) ? std::string() : name + " is not known: use " + sonde::list_launch_names();
}

/// The subcommands with their arguments, and what they call.
class CommandLine {
 public:
    CommandLine(int argc, char** argv) {
        app_.footer(describe_dialects());
        app_.set_version_flag("--version", "sonde-engine " SONDE_VERSION);
        app_.require_subcommand(1);
        for (int i = 0; i < argc; ++i) {
            run_.command += (i > 0 ? " " : "") + std::string(argv[i]);
        }
        add_run();
        add_plan_commands();
        add_tools();
        add_ssh();
    }

    /// Exit code of the command.
    int execute(int argc, char** argv) {
        try {
            app_.parse(argc, argv);
        } catch (const CLI::ParseError& error) {
            if (error.get_exit_code() == 0) {
                return app_.exit(error);  // --help, --version
            }
            sonde::records::print_error(explain_parse_error(app_, error));
            return sonde::phases::exit_plan;
        }
        for (const auto& [command, call] : calls_) {
            if (command->parsed()) {
                return call();
            }
        }
        return sonde::phases::exit_plan;
    }

 private:
    static std::string describe_dialects() {
        std::string text;
        for (const sonde::dialects::Dialect* dialect : sonde::dialects::list_dialects()) {
            text += (text.empty() ? "COMMAND LINES OF OTHER TOOLS:\n  " : "\n  ") + std::string(dialect->name) + ": " +
                    std::string(dialect->summary);
        }
        return text;
    }

    CLI::App* add_command(const std::string& name, const std::string& help, std::function<int()> call) {
        CLI::App* command = app_.add_subcommand(name, help);
        calls_.emplace_back(command, std::move(call));
        return command;
    }

    void add_run() {
        CLI::App* run = add_command("run", "Run a plan", [this] { return sonde::command_run(run_); });
        run->add_option("plan", run_.plan, "plan as JSON (schema sonde-plan/2); - reads standard input")->required();
        run->add_option("--record", run_.record, "append the record to this file; - writes it to standard output");
        run->add_option("--run-id", run_.run_id, "name of the run; default: time, plan and process number")
            ->check(check_run_id);
        run->add_option("--stage", run_.stage,
                        "run only this stage; stages begin at phases with process = \"separate\"")
            ->check(check_stage);
        run->add_option("--launch", run_.launch, "how the processes come together: " + sonde::list_launch_names())
            ->check(check_launch);
        run->add_option("--mpi-module", run_.mpi_module, "MPI module to load instead of the one next to the engine");
        run->add_option(
            "--allow-device", run_.allow_device,
            "let the plan write to this block device, its target.path; never one that is mounted or in use");
        run->add_flag(
            "--destroy", run_.destroy,
            "with --allow-device: write although the device holds a file system, a partition table or the like");
        run->add_flag("--dry-run", run_.dry_run, "check the plan and print what it would do");
    }

    void add_plan_commands() {
        CLI::App* resolve = add_command("resolve", "Print as JSON what a plan means and what it would touch",
                                        [this] { return sonde::command_resolve(resolve_); });
        resolve->add_option("plan", resolve_.plan, "plan as JSON; - reads standard input")->required();
        resolve->add_flag("--lines", resolve_.lines,
                          "each line is an object: plan, and optionally processes, nodes, node_memory_bytes");
        resolve->add_flag("--order", resolve_.order,
                          "count every access, and print a number that identifies their order");
        CLI::App* accesses =
            add_command("accesses", "List every (phase, task, file, offset, length) of a plan as NDJSON",
                        [this] { return sonde::command_accesses(plan_file_); });
        accesses->add_option("plan", plan_file_, "plan as JSON")->required();
        add_command("schema", "Print the JSON Schema of plans", [] { return sonde::command_schema(); });
    }

    void add_tools() {
        CLI::App* backends = add_command("backends", "List the backends and whether they can run here",
                                         [this] { return sonde::command_backends(json_, directory_); });
        backends->add_flag("--json", json_, "machine-readable");
        backends->add_option("--on", directory_, "directory to check");
        CLI::App* clean = add_command("clean", "Remove what killed runs left below a directory, and nothing else",
                                      [this] { return sonde::command_clean(clean_); });
        clean->add_option("directory", clean_.directory, "the target of the runs")->required();
        clean->add_flag("--dry-run", clean_.dry_run, "only print what would be removed");
        clean->add_flag("--yes", clean_.outside,
                        "also in directories outside this one where a run put files (data.files.across)");
        clean->add_flag("--elsewhere", clean_.elsewhere,
                        "also what runs on other hosts left; only when you know that they have ended");
        clean->add_flag("--json", clean_.json, "machine-readable");
        CLI::App* probe = add_command("probe", "Describe this node and the file system of a directory as JSON",
                                      [this] { return sonde::command_probe(directory_); });
        probe->add_option("directory", directory_, "directory on the file system")->required();
    }

    void add_ssh() {
        ssh_command_ = add_command(
            "ssh", "Start COMMAND, a command of this program, on several hosts over ssh, without MPI", [this] {
                ssh_.command = ssh_command_->remaining();
                return sonde::command_ssh(ssh_);
            });
        ssh_command_->add_option("--hosts", ssh_.hosts, "their names, separated by commas; each once")->required();
        ssh_command_->add_option("--processes", ssh_.processes, "processes on all hosts together")->required();
        ssh_command_->add_option("--shell", ssh_.shell, "program and options that start a command on a host")
            ->capture_default_str();
        ssh_command_->prefix_command();
        add_command("ssh-node", "Start the processes of one host for `ssh`", [] {
            return sonde::remote::run_ssh_node();
        })->group("");
    }

    CLI::App app_{"sonde-engine runs one plan, times it, and writes one record (NDJSON).", "sonde-engine"};
    std::vector<std::pair<CLI::App*, std::function<int()>>> calls_;
    sonde::RunArguments run_;
    sonde::ResolveArguments resolve_;
    sonde::CleanArguments clean_;
    sonde::SshArguments ssh_;
    CLI::App* ssh_command_ = nullptr;
    std::string plan_file_, directory_;
    bool json_ = false;
};

/// Reads the arguments and calls the command they name.
int dispatch(int argc, char** argv) {
    const std::optional<int> code = run_as_dialect(argc, argv);
    return code ? *code : CommandLine(argc, argv).execute(argc, argv);
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return dispatch(argc, argv);
    } catch (const std::exception& error) {
        // A last resort: an unexpected exception must not abort the program.
        sonde::records::print_error(error.what());
    } catch (...) {
        static_cast<void>(std::fputs("sonde-engine: an unknown failure\n", stderr));
    }
    return sonde::phases::exit_environment;
}
