// SPDX-License-Identifier: Apache-2.0
// The commands `resolve` and `accesses`, which describe a plan without running it, and `schema`.
#include "main/plan_commands.hpp"
#include "files/task_map.hpp"
#include "main/commands.hpp"
#include "phases/outcome.hpp"
#include "phases/planned_accesses.hpp"
#include "plan/choices.hpp"
#include "plan/document.hpp"
#include "plan/json_io.hpp"
#include "plan/parse.hpp"
#include "plan/resolved.hpp"
#include "plan/schema.hpp"
#include "plan/units.hpp"
#include "ranks/team_factory.hpp"
#include "records/environment.hpp"
#include "records/text.hpp"
#include "runs/capabilities.hpp"
#include "runs/footprint.hpp"
#include "runs/target_checks.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <iostream>
#include <sstream>

namespace sonde {
namespace {

using files::TaskMap;
using nlohmann::json;
using nlohmann::ordered_json;

/// Assigns processes to nodes in blocks, the default of launchers.
TaskMap make_task_map(const plan::Plan& plan, int processes, int nodes) {
    TaskMap tasks{plan.tasks.threads, {}, plan.tasks.active};
    for (int process = 0; process < processes; ++process) {
        tasks.node_of_process.push_back(static_cast<int>(static_cast<std::int64_t>(process) * nodes / processes));
    }
    return tasks;
}

std::unique_ptr<ranks::Team> form_single_team() {
    ranks::TeamRequest request;
    request.launch = ranks::LaunchMode::single;
    return ranks::form_team(request);
}

/// A number of a request, or its default.
std::int64_t read_request_number(const json& request, const char* name, std::int64_t otherwise, std::int64_t most) {
    if (!request.contains(name)) {
        return otherwise;
    }
    const json& value = request.at(name);
    if (!value.is_number_integer() || value.get<std::int64_t>() < 1 || value.get<std::int64_t>() > most) {
        throw plan::PlanError(std::string(name) + " must be a whole number from 1 to " + std::to_string(most));
    }
    return value.get<std::int64_t>();
}

/// Checks a plan without access to the target or the machine.
void check(const plan::Plan& plan, const TaskMap& tasks, std::uint64_t node_memory) {
    runs::check_tasks(plan, tasks);
    runs::check_extent(plan, tasks, node_memory);
}

/// The answer of `resolve` for one plan and a number of processes and nodes.
ordered_json answer_request(const json& request, bool in_order, ranks::Team& team) {
    if (!request.is_object() || !request.contains("plan")) {
        throw plan::PlanError("a request must be an object with the member plan");
    }
    const plan::Plan plan = plan::parse_plan(plan::serialize_json(request.at("plan")), runs::list_capabilities());
    const auto processes = static_cast<int>(read_request_number(request, "processes", plan.tasks.processes, 1 << 24));
    const auto nodes = static_cast<int>(read_request_number(request, "nodes", 1, processes));
    const auto memory = static_cast<std::uint64_t>(read_request_number(
        request, "node_memory_bytes", static_cast<std::int64_t>(records::read_node_memory()), INT64_MAX));
    const TaskMap tasks = make_task_map(plan, processes, nodes);
    check(plan, tasks, memory);
    ordered_json out{{"plan", plan::resolve_plan(plan)}, {"tasks", tasks.tasks()}};
    const std::vector<phases::PlannedPhase> accesses = phases::list_accesses(plan, tasks, memory, team, in_order);
    const runs::Footprint need = runs::compute_footprint(plan, tasks, memory, runs::StonewallCount::nothing);
    const runs::Footprint most = runs::compute_footprint(plan, tasks, memory, runs::StonewallCount::whole_volume);
    out["space"] = {{"bytes", need.bytes}, {"files", need.file_count}, {"most_bytes", most.bytes}};
    out["phases"] = ordered_json::array();
    for (std::size_t i = 0; i < accesses.size(); ++i) {
        const phases::PlannedPhase& phase = accesses[i];
        ordered_json row{{"phase", plan.phases[i].id},
                         {"files", phase.files},
                         {"segments", phase.segments},
                         {"operations", phase.operations},
                         {"bytes", phase.bytes}};
        if (in_order) {
            row["order"] = std::to_string(phase.order_hash);
        }
        out["phases"].push_back(row);
    }
    return out;
}

void print_line(const ordered_json& line) {
    std::cout << plan::serialize_json(line) << '\n';
}

int finish_output() {
    std::cout.flush();
    if (!std::cout) {
        records::print_error("the answer could not be written to standard output");
        return phases::exit_environment;
    }
    return phases::exit_done;
}

}  // namespace

std::string read_plan(const std::string& path) {
    constexpr std::size_t longest = 64U << 20U;
    const bool standard = path == "-";
    const int file = standard ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    const std::string name = standard ? "standard input" : path;
    std::string text;
    ssize_t count = file < 0 ? -1 : 1;
    while (count > 0 && text.size() <= longest) {
        std::array<char, 65536> piece{};
        count = ::read(file, piece.data(), piece.size());
        text.append(piece.data(), static_cast<std::size_t>(std::max<ssize_t>(0, count)));
    }
    const int error = errno;
    if (!standard && file >= 0) {
        ::close(file);
    }
    if (count < 0) {
        throw plan::PlanError("cannot read the plan " + name + ": " + std::strerror(error) + "; name a JSON file");
    }
    if (text.size() > longest) {
        throw plan::PlanError("the plan " + name + " is longer than 64 MiB: it is not a Sonde plan");
    }
    return text;
}

int print_dry_run(const plan::Plan& plan) {
    const TaskMap tasks = make_task_map(plan, plan.tasks.processes, 1);
    runs::check_machine(plan);
    check(plan, tasks, records::read_node_memory());
    const std::unique_ptr<ranks::Team> team = form_single_team();
    const std::vector<phases::PlannedPhase> accesses =
        phases::list_accesses(plan, tasks, records::read_node_memory(), *team, false);
    std::cout << "plan " << plan.id << ": " << tasks.tasks() << " tasks, target " << plan.target.path << "\n";
    for (std::size_t i = 0; i < accesses.size(); ++i) {
        const plan::Phase& phase = plan.phases[i];
        std::cout << "  " << phase.id << ": " << plan::operation_name(phase.op) << " by " << phase.data.backend << ", ";
        if (phase.meta) {
            std::cout << accesses[i].operations << " operation(s), " << accesses[i].files << " item(s)\n";
            continue;
        }
        std::cout << plan::format_bytes(accesses[i].bytes) << " in " << accesses[i].files << " file(s), "
                  << plan::format_bytes(phase.data.access.transfer) << " at a time, "
                  << plan::get_value_name(plan::choices::orders, phase.data.access.order) << "\n";
    }
    return phases::exit_done;
}

int command_resolve(const ResolveArguments& arguments) {
    try {
        const std::string text = read_plan(arguments.plan);
        const std::unique_ptr<ranks::Team> team = form_single_team();
        std::ios::sync_with_stdio(false);
        if (!arguments.lines) {
            print_line(answer_request(json{{"plan", plan::parse_document(text)}}, arguments.order, *team));
            return finish_output();
        }
        std::istringstream lines(text);
        for (std::string line; std::getline(lines, line);) {
            try {
                print_line(answer_request(plan::parse_document(line), arguments.order, *team));
            } catch (const plan::PlanError& error) {
                print_line({{"error", records::to_json_text(error.what())}});
            }
        }
        return finish_output();
    } catch (const plan::PlanError& error) {
        records::print_error(error.what());
        return phases::exit_plan;
    } catch (const std::exception& error) {
        records::print_error(error.what());
        return phases::exit_environment;
    }
}

int command_schema() {
    std::cout << plan::serialize_json(plan::build_schema(runs::list_capabilities()), plan::JsonEncoding::strict_utf8, 2)
              << '\n';
    return finish_output();
}

int command_accesses(const std::string& plan_file) {
    try {
        const plan::Plan plan = plan::parse_plan(read_plan(plan_file), runs::list_capabilities());
        const std::unique_ptr<ranks::Team> team = form_single_team();
        const TaskMap tasks = make_task_map(plan, plan.tasks.processes, 1);
        check(plan, tasks, records::read_node_memory());
        std::ios::sync_with_stdio(false);
        phases::list_accesses(plan, tasks, records::read_node_memory(), *team, true,
                              [&plan](const phases::PlannedAccess& access) {
                                  const plan::Phase& phase = plan.phases[access.phase];
                                  ordered_json line{{"phase", phase.id}, {"task", access.task}};
                                  if (!phase.meta && !plan::acts_on_files(phase.op)) {
                                      line["file"] = access.file;
                                  }
                                  line["path"] = records::to_json_text(access.path);
                                  if (!phase.meta && !plan::acts_on_files(phase.op)) {
                                      line["offset"] = access.offset;
                                      line["length"] = access.length;
                                  }
                                  print_line(line);
                              });
        return finish_output();
    } catch (const std::exception& error) {
        records::print_error(error.what());
        return phases::exit_plan;
    }
}

}  // namespace sonde
