// SPDX-License-Identifier: Apache-2.0
// The commands that ask about a plan without running it: what it means, and what it would touch.
#include "files/task_map.hpp"
#include "main/commands.hpp"
#include "main/read_plan.hpp"
#include "phases/outcome.hpp"
#include "phases/touch.hpp"
#include "plan/document.hpp"
#include "plan/parse.hpp"
#include "plan/resolved.hpp"
#include "plan/units.hpp"
#include "plan/words.hpp"
#include "records/environment.hpp"
#include "records/text.hpp"
#include "runs/extent.hpp"
#include "runs/offer.hpp"
#include "runs/target.hpp"

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

/// Processes dealt to nodes in blocks, as launchers do it unless told otherwise.
TaskMap task_map(const plan::Plan& plan, int processes, int nodes) {
    TaskMap tasks{plan.tasks.threads, {}, plan.tasks.used};
    for (int process = 0; process < processes; ++process) {
        tasks.node_of_process.push_back(static_cast<int>(static_cast<std::int64_t>(process) * nodes / processes));
    }
    return tasks;
}

std::unique_ptr<ranks::Team> alone() {
    ranks::FormRequest request;
    request.launch = ranks::Launch::single;
    return ranks::Team::form(request);
}

/// A number of a request, or what it is without one.
std::int64_t number_of(const json& request, const char* name, std::int64_t otherwise, std::int64_t most) {
    if (!request.contains(name)) {
        return otherwise;
    }
    const json& value = request.at(name);
    if (!value.is_number_integer() || value.get<std::int64_t>() < 1 || value.get<std::int64_t>() > most) {
        throw plan::PlanError(std::string(name) + " must be a whole number from 1 to " + std::to_string(most));
    }
    return value.get<std::int64_t>();
}

/// All that is asked before a run and needs neither the target nor the machine.
void check(const plan::Plan& plan, const TaskMap& tasks, std::uint64_t node_memory) {
    runs::check_tasks(plan, tasks);
    runs::check_extent(plan, tasks, node_memory);
}

/// What `resolve` says about one plan on so many processes and nodes.
ordered_json answer(const json& request, bool in_order, ranks::Team& team) {
    if (!request.is_object() || !request.contains("plan")) {
        throw plan::PlanError("a request must be an object with the member plan");
    }
    const plan::Plan plan =
        plan::parse_plan(request.at("plan").dump(-1, ' ', false, json::error_handler_t::replace), runs::offer());
    const auto processes = static_cast<int>(number_of(request, "processes", plan.tasks.processes, 1 << 24));
    const auto nodes = static_cast<int>(number_of(request, "nodes", 1, processes));
    const auto memory = static_cast<std::uint64_t>(
        number_of(request, "node_memory_bytes", static_cast<std::int64_t>(records::node_memory_bytes()), INT64_MAX));
    const TaskMap tasks = task_map(plan, processes, nodes);
    check(plan, tasks, memory);
    ordered_json out{{"plan", plan::resolved(plan)}, {"tasks", tasks.tasks()}};
    const std::vector<phases::TouchedPhase> touched = phases::touch(plan, tasks, memory, team, in_order);
    const runs::Footprint need = runs::footprint(plan, tasks, memory);
    out["space"] = {{"bytes", need.bytes}, {"files", need.files}};
    out["phases"] = ordered_json::array();
    for (std::size_t i = 0; i < touched.size(); ++i) {
        const phases::TouchedPhase& phase = touched[i];
        ordered_json one{{"phase", plan.phases[i].id},
                         {"files", phase.files},
                         {"segments", phase.segments},
                         {"operations", phase.operations},
                         {"bytes", phase.bytes}};
        if (in_order) {
            one["order"] = std::to_string(phase.order);
        }
        out["phases"].push_back(one);
    }
    return out;
}

void print(const ordered_json& line) {
    std::cout << line.dump(-1, ' ', false, ordered_json::error_handler_t::replace) << '\n';
}

int written() {
    std::cout.flush();
    if (!std::cout) {
        records::complain("the answer could not be written to standard output");
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

int say_what_would_be_done(const plan::Plan& plan) {
    const TaskMap tasks = task_map(plan, plan.tasks.processes, 1);
    runs::check_machine(plan);
    check(plan, tasks, records::node_memory_bytes());
    const std::unique_ptr<ranks::Team> team = alone();
    const std::vector<phases::TouchedPhase> touched =
        phases::touch(plan, tasks, records::node_memory_bytes(), *team, false);
    std::cout << "plan " << plan.id << ": " << tasks.tasks() << " tasks, target " << plan.target.path << "\n";
    for (std::size_t i = 0; i < touched.size(); ++i) {
        const plan::Phase& phase = plan.phases[i];
        std::cout << "  " << phase.id << ": " << plan::text(phase.op) << " by " << phase.data.backend << ", ";
        if (phase.meta) {
            std::cout << touched[i].operations << " operation(s), " << touched[i].files << " item(s)\n";
            continue;
        }
        std::cout << plan::format_bytes(touched[i].bytes) << " in " << touched[i].files << " file(s), "
                  << plan::format_bytes(phase.data.access.transfer) << " at a time, "
                  << plan::word(plan::words::orders, phase.data.access.order) << "\n";
    }
    return phases::exit_done;
}

int command_resolve(const ResolveArguments& arguments) {
    try {
        const std::string text = read_plan(arguments.plan);
        const std::unique_ptr<ranks::Team> team = alone();
        std::ios::sync_with_stdio(false);
        if (!arguments.lines) {
            print(answer(json{{"plan", plan::parse_document(text)}}, arguments.order, *team));
            return written();
        }
        std::istringstream lines(text);
        for (std::string line; std::getline(lines, line);) {
            try {
                print(answer(plan::parse_document(line), arguments.order, *team));
            } catch (const plan::PlanError& error) {
                print({{"error", records::json_text(error.what())}});
            }
        }
        return written();
    } catch (const plan::PlanError& error) {
        records::complain(error.what());
        return phases::exit_plan;
    } catch (const std::exception& error) {
        records::complain(error.what());
        return phases::exit_environment;
    }
}

int command_touched(const std::string& plan_file) {
    try {
        const plan::Plan plan = plan::parse_plan(read_plan(plan_file), runs::offer());
        const std::unique_ptr<ranks::Team> team = alone();
        const TaskMap tasks = task_map(plan, plan.tasks.processes, 1);
        check(plan, tasks, records::node_memory_bytes());
        std::ios::sync_with_stdio(false);
        phases::touch(plan, tasks, records::node_memory_bytes(), *team, true, [&plan](const phases::Touched& access) {
            const plan::Phase& phase = plan.phases[access.phase];
            ordered_json line{{"phase", phase.id}, {"task", access.task}};
            if (!phase.meta && !plan::on_files(phase.op)) {
                line["file"] = access.file;
            }
            line["path"] = records::json_text(access.path);
            if (!phase.meta && !plan::on_files(phase.op)) {
                line["offset"] = access.offset;
                line["length"] = access.length;
            }
            print(line);
        });
        return written();
    } catch (const std::exception& error) {
        records::complain(error.what());
        return phases::exit_plan;
    }
}

}  // namespace sonde
