// SPDX-License-Identifier: Apache-2.0
// Runs the plans that a dialect makes of another tool's command line, one after the other, with one team.
#include "dialects/dialect.hpp"
#include "main/commands.hpp"
#include "main/launch_names.hpp"
#include "main/run_id.hpp"
#include "main/signals.hpp"
#include "main/team_work.hpp"
#include "plan/parse.hpp"
#include "ranks/launcher.hpp"
#include "records/text.hpp"
#include "runs/offer.hpp"
#include "runs/run.hpp"
#include "runs/target.hpp"

#include <cstdlib>
#include <iostream>

namespace sonde {
namespace {

using dialects::Session;

/// What Sonde's own options say, which stand anywhere among the tool's.
struct Own {
    std::string record, run_id, title, launch = "auto", mpi_module;
    int processes = 1;
    dialects::Beside beside = dialects::Beside::errors;
    bool show_plans = false;
};

constexpr const char* own_help =
    "\n\nOf Sonde, anywhere among them:\n"
    "  --sonde-record FILE      keep the record (NDJSON) in FILE, those of further plans in FILE.1, FILE.2, …;\n"
    "                           or name it in the environment variable SONDE_RECORD\n"
    "  --sonde-run-id NAME      name of the run\n"
    "  --sonde-title TEXT       title of its plans, for people\n"
    "  --sonde-processes N      without a launcher: fork N processes (1)\n"
    "  --sonde-launch HOW       auto, single, forked, node or mpi\n"
    "  --sonde-mpi-module FILE  MPI module to load\n"
    "  --sonde-beside WHERE     Sonde's own figures and findings: stderr, output (among the tool's) or none\n"
    "  --sonde-plan             print the plans that the words come to, and run nothing";

int whole_number(const std::string& option, const std::string& text, int least, int most) {
    char* end = nullptr;
    const long value = std::strtol(text.c_str(), &end, 10);
    if (text.empty() || *end != '\0' || value < least || value > most) {
        throw plan::PlanError(option + " is \"" + text + "\", but must be a whole number from " +
                              std::to_string(least) + " to " + std::to_string(most));
    }
    return static_cast<int>(value);
}

dialects::Beside beside_named(const std::string& where) {
    if (where == "stderr") {
        return dialects::Beside::errors;
    }
    if (where != "output" && where != "none") {
        throw plan::PlanError("--sonde-beside is \"" + where + "\", but must be stderr, output or none");
    }
    return where == "output" ? dialects::Beside::output : dialects::Beside::nowhere;
}

/// Takes Sonde's own options out of the words.
Own take_own(std::vector<std::string>& words) {
    Own own;
    if (const char* record = std::getenv("SONDE_RECORD")) {
        own.record = record;
    }
    std::vector<std::string> rest;
    for (std::size_t i = 0; i < words.size(); ++i) {
        std::string name = words[i];
        if (!name.starts_with("--sonde-")) {
            rest.push_back(std::move(name));
            continue;
        }
        if (name == "--sonde-plan") {
            own.show_plans = true;
            continue;
        }
        const std::size_t equals = name.find('=');
        std::string value;
        if (equals != std::string::npos) {
            value = name.substr(equals + 1);
            name.resize(equals);
        } else if (i + 1 < words.size()) {
            value = words[++i];
        } else {
            throw plan::PlanError(name + " needs a value after it");
        }
        if (name == "--sonde-record") {
            own.record = value;
        } else if (name == "--sonde-run-id") {
            own.run_id = value;
        } else if (name == "--sonde-title") {
            own.title = value;
        } else if (name == "--sonde-launch") {
            own.launch = value;
        } else if (name == "--sonde-mpi-module") {
            own.mpi_module = value;
        } else if (name == "--sonde-beside") {
            own.beside = beside_named(value);
        } else if (name == "--sonde-processes") {
            own.processes = whole_number(name, value, 1, 65536);
        } else {
            throw plan::PlanError("there is no option " + name +
                                  ": use --sonde-record, --sonde-run-id, --sonde-title, --sonde-processes, "
                                  "--sonde-launch, --sonde-mpi-module, --sonde-beside or --sonde-plan");
        }
    }
    words = std::move(rest);
    return own;
}

/// The next plan, under the title that was asked for.
std::optional<std::string> next_plan(Session& session, const Own& own) {
    std::optional<std::string> text = session.next();
    if (text && !own.title.empty()) {
        nlohmann::ordered_json plan = nlohmann::ordered_json::parse(*text);
        plan["title"] = own.title;
        text = plan.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
    }
    return text;
}

/// What the root tells the others: the next plan, or the exit code of the program.
nlohmann::json next_word(Session& session, const Own& own) {
    try {
        const std::optional<std::string> text = next_plan(session, own);
        return text ? nlohmann::json{{"plan", *text}} : nlohmann::json{{"done", true}};
    } catch (const plan::PlanError& error) {
        records::complain(error.what());
        return {{"code", static_cast<int>(phases::exit_plan)}};
    }
}

int show_plans(Session& session, const Own& own) {
    session.begin({});
    while (const std::optional<std::string> text = next_plan(session, own)) {
        std::cout << nlohmann::ordered_json::parse(plan::parse_plan(*text, runs::offer()).canonical).dump(2) << "\n";
        session.ended(phases::exit_done);
    }
    return phases::exit_done;
}

dialects::Setting setting_of(const ranks::Place& place, const std::vector<std::string>& words,
                             const std::string& program, dialects::Beside beside) {
    dialects::Setting setting{place.processes, place.nodes, place.node_of, {program}, beside};
    setting.command.insert(setting.command.end(), words.begin(), words.end());
    return setting;
}

/// All plans, by all processes. The worst exit code.
int run_all(Session& session, const Own& own, const std::string& command, ranks::Team& team) {
    const bool root = team.place().root();
    phases::Ground ground;
    int worst = phases::exit_done;
    for (int number = 0;; ++number) {
        const nlohmann::json word =
            nlohmann::json::parse(team.broadcast(root ? next_word(session, own).dump() : std::string()));
        if (!word.contains("plan")) {
            return std::max(worst, word.value("code", worst));
        }
        int code = phases::exit_done;
        try {
            const plan::Plan plan = plan::parse_plan(word.at("plan").get<std::string>(), runs::offer());
            const std::string suffix = number == 0 ? "" : "." + std::to_string(number);
            phases::RunOptions options{own.record.empty() || own.record == "-" ? own.record : own.record + suffix,
                                       own.run_id + suffix, command};
            options.ground = &ground;
            if (root) {
                options.listener = [&session](const char* type, const nlohmann::ordered_json& content) {
                    session.line(type, content);
                };
            }
            code = runs::execute(plan, options, team);
        } catch (const plan::PlanError& error) {  // found by all alike
            if (root) {
                records::complain(error.what());
            }
            code = phases::exit_plan;
        }
        if (root) {
            session.ended(code);
        }
        worst = worst == phases::exit_done ? code : worst;
        if (code != phases::exit_done && code != phases::exit_mismatch) {
            return code;
        }
    }
}

int run(const dialects::Dialect& dialect, const std::vector<std::string>& arguments) {
    std::vector<std::string> words(arguments.begin() + 2, arguments.end());
    Own own = take_own(words);
    const std::unique_ptr<Session> session = dialect.read(words);
    if (own.show_plans) {
        return show_plans(*session, own);
    }
    std::string command;
    for (const std::string& word : arguments) {
        command += (command.empty() ? "" : " ") + word;
    }
    const std::optional<ranks::Launch> launch = launch_named(own.launch);
    if (!launch) {
        throw plan::PlanError("--sonde-launch is \"" + own.launch +
                              "\", but must be one of auto, single, forked, node, mpi");
    }
    ranks::FormRequest request;
    request.launch = *launch;
    request.processes = own.processes;
    request.mpi_module = own.mpi_module;
    request.need_mpi = session->needs_mpi();
    const std::unique_ptr<ranks::Team> team = ranks::Team::form(request);
    const bool root = team->place().root();
    install_signals(team->control(), root);
    return work_together(*team, [&](int& code) {
        own.run_id = team->broadcast(own.run_id.empty() ? make_run_id(std::string(dialect.name)) : own.run_id);
        std::string complaint;
        if (root) {
            try {
                session->begin(setting_of(team->place(), words, std::string(dialect.name), own.beside));
            } catch (const plan::PlanError& error) {
                complaint = error.what();
                records::complain(complaint);
            }
        }
        const bool good = team->all(complaint.empty());
        code = good ? run_all(*session, own, command, *team) : static_cast<int>(phases::exit_plan);
        if (root && good) {
            code = session->finish(code);
        }
        code = std::stoi(team->broadcast(std::to_string(code)));
    });
}

}  // namespace

int command_dialect(const dialects::Dialect& dialect, const std::vector<std::string>& words) {
    // Before the processes have met, each finds the same mistake: one of them says it.
    const ranks::Launched how = ranks::launched();
    try {
        return run(dialect, words);
    } catch (const dialects::Help& help) {
        if (how.process == 0) {
            std::cout << help.what() << own_help << "\n";
        }
        return phases::exit_done;
    } catch (const plan::PlanError& error) {
        if (how.process == 0) {
            records::complain(std::string(dialect.name) + ": " + error.what());
        }
        return phases::exit_plan;
    } catch (const std::exception& error) {
        if (how.process == 0 || (how.local == 0 && !how.one_node())) {
            records::complain(error.what());
        }
        return phases::exit_environment;
    }
}

}  // namespace sonde
