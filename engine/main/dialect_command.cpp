// SPDX-License-Identifier: Apache-2.0
// Runs the plans that a dialect makes of another tool's command line, one after the other, with one team.
#include "dialects/dialect.hpp"
#include "main/commands.hpp"
#include "main/launch_names.hpp"
#include "main/signals.hpp"
#include "main/team_work.hpp"
#include "plan/json_io.hpp"
#include "plan/parse.hpp"
#include "ranks/team_factory.hpp"
#include "records/text.hpp"
#include "runs/capabilities.hpp"
#include "runs/execute.hpp"
#include "runs/process_venue.hpp"
#include "runs/run_directory.hpp"
#include "runs/target_checks.hpp"

#include <cstdlib>
#include <iostream>

namespace sonde {
namespace {

using dialects::Session;

/// Values of the options --sonde-…, which may appear anywhere among the tool's options.
struct SondeOptions {
    std::string record, run_id, title, launch = "auto", mpi_module;
    int processes = 1;
    dialects::ReportStream report_stream = dialects::ReportStream::errors;
    bool show_plans = false;
};

std::string describe_sonde_options() {
    return "\n\nOf Sonde, anywhere among them:\n"
           "  --sonde-record FILE      keep the record (NDJSON) in FILE, those of further plans in FILE.1, FILE.2, …;\n"
           "                           or name it in the environment variable SONDE_RECORD\n"
           "  --sonde-run-id NAME      name of the run\n"
           "  --sonde-title TEXT       title of its plans, for people\n"
           "  --sonde-processes N      without a launcher: fork N processes (1)\n"
           "  --sonde-launch HOW       " +
           list_launch_names() +
           "\n"
           "  --sonde-mpi-module FILE  MPI module to load\n"
           "  --sonde-report WHERE     Sonde's own figures and findings: stderr, output (among the tool's) or none\n"
           "  --sonde-plan             print the plans that the words come to, and run nothing";
}

int read_whole_number(const std::string& option, const std::string& text, int least, int most) {
    char* end = nullptr;
    const long value = std::strtol(text.c_str(), &end, 10);
    if (text.empty() || *end != '\0' || value < least || value > most) {
        throw plan::PlanError(option + " is \"" + text + "\", but must be a whole number from " +
                              std::to_string(least) + " to " + std::to_string(most));
    }
    return static_cast<int>(value);
}

dialects::ReportStream find_report_stream(const std::string& where) {
    if (where == "stderr") {
        return dialects::ReportStream::errors;
    }
    if (where != "output" && where != "none") {
        throw plan::PlanError("--sonde-report is \"" + where + "\", but must be stderr, output or none");
    }
    return where == "output" ? dialects::ReportStream::output : dialects::ReportStream::none;
}

/// Removes the options --sonde-… from the arguments and returns their values.
SondeOptions take_sonde_options(std::vector<std::string>& tool_arguments) {
    SondeOptions own_options;
    if (const char* record = std::getenv("SONDE_RECORD")) {
        own_options.record = record;
    }
    std::vector<std::string> remaining;
    for (std::size_t i = 0; i < tool_arguments.size(); ++i) {
        std::string name = tool_arguments[i];
        if (!name.starts_with("--sonde-")) {
            remaining.push_back(std::move(name));
            continue;
        }
        if (name == "--sonde-plan") {
            own_options.show_plans = true;
            continue;
        }
        const std::size_t equals = name.find('=');
        std::string value;
        if (equals != std::string::npos) {
            value = name.substr(equals + 1);
            name.resize(equals);
        } else if (i + 1 < tool_arguments.size()) {
            value = tool_arguments[++i];
        } else {
            throw plan::PlanError(name + " needs a value after it");
        }
        if (name == "--sonde-record") {
            own_options.record = value;
        } else if (name == "--sonde-run-id") {
            own_options.run_id = value;
        } else if (name == "--sonde-title") {
            own_options.title = value;
        } else if (name == "--sonde-launch") {
            own_options.launch = value;
        } else if (name == "--sonde-mpi-module") {
            own_options.mpi_module = value;
        } else if (name == "--sonde-report") {
            own_options.report_stream = find_report_stream(value);
        } else if (name == "--sonde-processes") {
            own_options.processes = read_whole_number(name, value, 1, 65536);
        } else {
            throw plan::PlanError("there is no option " + name +
                                  ": use --sonde-record, --sonde-run-id, --sonde-title, --sonde-processes, "
                                  "--sonde-launch, --sonde-mpi-module, --sonde-report or --sonde-plan");
        }
    }
    tool_arguments = std::move(remaining);
    return own_options;
}

/// The next plan, with the title of --sonde-title.
std::optional<std::string> next_plan(Session& session, const SondeOptions& own_options) {
    std::optional<std::string> text = session.next_plan();
    if (text && !own_options.title.empty()) {
        nlohmann::ordered_json plan = plan::parse_ordered_json(*text);
        plan["title"] = own_options.title;
        text = plan::serialize_json(plan);
    }
    return text;
}

/// Message of the root to all processes: the next plan, or the exit code of the program.
nlohmann::json next_message(Session& session, const SondeOptions& own_options) {
    try {
        const std::optional<std::string> text = next_plan(session, own_options);
        return text ? nlohmann::json{{"plan", *text}} : nlohmann::json{{"done", true}};
    } catch (const plan::PlanError& error) {
        records::print_error(error.what());
        return {{"code", static_cast<int>(phases::exit_plan)}};
    }
}

int show_plans(Session& session, const SondeOptions& own_options) {
    session.begin({});
    while (const std::optional<std::string> text = next_plan(session, own_options)) {
        const nlohmann::ordered_json plan =
            plan::parse_ordered_json(plan::parse_plan(*text, runs::list_capabilities()).canonical);
        std::cout << plan::serialize_json(plan, plan::JsonEncoding::strict_utf8, 2) << "\n";
        session.end_plan(phases::exit_done);
    }
    return phases::exit_done;
}

dialects::SessionSetup make_session_setup(const ranks::ProcessLocation& location,
                                          const std::vector<std::string>& tool_arguments, const std::string& program,
                                          dialects::ReportStream report_stream) {
    dialects::SessionSetup setting{location.processes, location.nodes, location.node_of, {program}, report_stream};
    setting.command.insert(setting.command.end(), tool_arguments.begin(), tool_arguments.end());
    return setting;
}

/// Runs all plans in all processes. Returns the worst exit code.
int run_all(Session& session, const SondeOptions& own_options, const std::string& command, ranks::Team& team) {
    const bool root = team.location().is_root();
    phases::SharedArena ground;
    int worst = phases::exit_done;
    for (int number = 0;; ++number) {
        const nlohmann::json message = plan::parse_json(team.broadcast(
            root ? plan::serialize_json(next_message(session, own_options), plan::JsonEncoding::strict_utf8)
                 : std::string()));
        if (!message.contains("plan")) {
            return std::max(worst, message.value("code", worst));
        }
        int code = phases::exit_done;
        try {
            const plan::Plan plan = plan::parse_plan(message.at("plan").get<std::string>(), runs::list_capabilities());
            const std::string suffix = number == 0 ? "" : "." + std::to_string(number);
            phases::RunOptions options{own_options.record.empty() || own_options.record == "-"
                                           ? own_options.record
                                           : own_options.record + suffix,
                                       own_options.run_id + suffix, command};
            options.arena = &ground;
            if (root) {
                options.listener = [&session](const char* type, const nlohmann::ordered_json& content) {
                    session.read_record_line(type, content);
                };
            }
            runs::ProcessVenue venue(plan, options, team);
            code = runs::execute(venue);
        } catch (const plan::PlanError& error) {  // detected by all processes
            if (root) {
                records::print_error(error.what());
            }
            code = phases::exit_plan;
        }
        if (root) {
            session.end_plan(code);
        }
        worst = worst == phases::exit_done ? code : worst;
        if (code != phases::exit_done && code != phases::exit_mismatch) {
            return code;
        }
    }
}

int run_dialect(const dialects::Dialect& dialect, const std::vector<std::string>& arguments) {
    std::vector<std::string> tool_arguments(arguments.begin() + 2, arguments.end());
    SondeOptions own_options = take_sonde_options(tool_arguments);
    const std::unique_ptr<Session> session = dialect.make_session(tool_arguments);
    if (own_options.show_plans) {
        return show_plans(*session, own_options);
    }
    std::string command;
    for (const std::string& message : arguments) {
        command += (command.empty() ? "" : " ") + message;
    }
    const std::optional<ranks::LaunchMode> launch = find_launch(own_options.launch);
    if (!launch) {
        throw plan::PlanError("--sonde-launch is \"" + own_options.launch + "\", but must be " + list_launch_names());
    }
    ranks::TeamRequest request;
    request.launch = *launch;
    request.processes = own_options.processes;
    request.mpi_module = own_options.mpi_module;
    request.need_mpi = session->needs_mpi();
    request.prefer_site = session->prefers_site_mpi();
    const std::unique_ptr<ranks::Team> team = ranks::form_team(request);
    const bool root = team->location().is_root();
    install_signals(team->control(), root);
    return run_in_team(*team, [&](int& code) {
        own_options.run_id = team->broadcast(own_options.run_id.empty() ? runs::make_run_id(std::string(dialect.name))
                                                                        : own_options.run_id);
        std::string complaint;
        if (root) {
            try {
                session->begin(make_session_setup(team->location(), tool_arguments, std::string(dialect.name),
                                                  own_options.report_stream));
            } catch (const plan::PlanError& error) {
                complaint = error.what();
                records::print_error(complaint);
            }
        }
        const bool good = team->all_true(complaint.empty());
        code = good ? run_all(*session, own_options, command, *team) : static_cast<int>(phases::exit_plan);
        if (root && good) {
            code = session->finish_session(code);
        }
        code = std::stoi(team->broadcast(std::to_string(code)));
    });
}

}  // namespace

int command_dialect(const dialects::Dialect& dialect, const std::vector<std::string>& tool_arguments) {
    // Before the team exists, every process detects the same error, so only one prints it.
    const ranks::LaunchEnvironment launch = ranks::detect_launch();
    try {
        return run_dialect(dialect, tool_arguments);
    } catch (const dialects::HelpRequested& help) {
        if (launch.process == 0) {
            std::cout << help.what() << describe_sonde_options() << "\n";
        }
        return phases::exit_done;
    } catch (const plan::PlanError& error) {
        if (launch.process == 0) {
            records::print_error(std::string(dialect.name) + ": " + error.what());
        }
        return phases::exit_plan;
    } catch (const std::exception& error) {
        if (launch.process == 0 || (launch.local_index == 0 && !launch.is_one_node())) {
            records::print_error(error.what());
        }
        return phases::exit_environment;
    }
}

}  // namespace sonde
