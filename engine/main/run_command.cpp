// SPDX-License-Identifier: Apache-2.0
#include "files/file_map.hpp"
#include "files/segments.hpp"
#include "files/trees.hpp"
#include "main/commands.hpp"
#include "main/launch_names.hpp"
#include "main/run_id.hpp"
#include "main/signals.hpp"
#include "main/team_work.hpp"
#include "phases/stages.hpp"
#include "plan/parse.hpp"
#include "plan/units.hpp"
#include "ranks/launcher.hpp"
#include "records/environment.hpp"
#include "records/text.hpp"
#include "runs/extent.hpp"
#include "runs/run.hpp"
#include "runs/target.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <iostream>

namespace sonde {
namespace {

using files::TaskMap;

/// The text of a plan, not more than any plan can have: what is named may be a device that never ends.
std::string read_all(const std::string& path) {
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

int dry_run(const plan::Plan& plan) {
    const TaskMap tasks{plan.tasks.threads, std::vector<int>(static_cast<std::size_t>(plan.tasks.processes), 0),
                        plan.tasks.used};
    runs::check_extent(plan, tasks, records::node_memory_bytes());
    runs::check_backends(plan, true);
    std::cout << "plan " << plan.id << ": " << tasks.tasks() << " tasks, target " << plan.target.path << "\n";
    for (const plan::Phase& phase : plan.phases) {
        if (phase.meta) {
            const patterns::TreeShape shape(phase.meta->tree);
            const auto all = static_cast<std::uint64_t>(tasks.tasks());
            std::cout << "  " << phase.id << ": " << plan::text(phase.op) << " by " << phase.data.backend << ", "
                      << shape.items() * all << " item(s) in "
                      << shape.copies() * shape.directories() * files::branches_of(*phase.meta, tasks).size()
                      << " directories\n";
            continue;
        }
        const std::uint64_t segments = files::segments_of(phase, tasks, records::node_memory_bytes());
        const files::FileMap map(plan.target.path, phase.data.files, tasks);
        const auto files = static_cast<std::uint64_t>(phase.files.empty() ? map.files_per_task()
                                                                          : static_cast<int>(phase.files.size()));
        const std::uint64_t bytes =
            segments * phase.data.access.block * files * static_cast<std::uint64_t>(tasks.tasks());
        std::cout << "  " << phase.id << ": " << plan::text(phase.op) << " by " << phase.data.backend << ", "
                  << plan::format_bytes(bytes) << " in " << map.distinct_files() << " file(s), "
                  << plan::format_bytes(phase.data.access.transfer) << " at a time, "
                  << plan::text(phase.data.access.order) << "\n";
    }
    return phases::exit_done;
}

/// Waits for the process of a stage; passes on what people and launchers send to this one. The signals are blocked, so
/// that one which comes between two stages waits for the next stage, which then ends in good order.
int wait_for_stage(pid_t child, const sigset_t& awaited) {
    for (;;) {
        int status = 0;
        const pid_t ended = waitpid(child, &status, WNOHANG);
        if (ended == child) {
            return status;
        }
        siginfo_t info{};
        const int number = sigwaitinfo(&awaited, &info);
        // What is typed at the terminal (SI_KERNEL) reaches the whole process group by itself.
        if (number > 0 && number != SIGCHLD && info.si_code != SI_KERNEL) {
            kill(child, number);
        }
    }
}

/// Forks one process for each stage, so that a later stage has nothing of the earlier one's memory or open files.
int run_stages(const RunArguments& arguments, int stages) {
    const sigset_t awaited = stop_signals(true);
    sigprocmask(SIG_BLOCK, &awaited, nullptr);
    const pid_t parent = getpid();
    for (int stage = 0; stage < stages; ++stage) {
        std::fflush(nullptr);
        const pid_t child = fork();
        if (child < 0) {
            records::complain("cannot start a process for stage " + std::to_string(stage) + ": " +
                              std::strerror(errno) + "; check `ulimit -u`");
            return phases::exit_environment;
        }
        if (child == 0) {
            prctl(PR_SET_PDEATHSIG, SIGTERM);  // nobody would start the next stage: end in good order
            if (getppid() != parent) {
                _exit(phases::exit_interrupted);
            }
            RunArguments own = arguments;
            own.stage = stage;
            std::exit(command_run(own));
        }
        const int status = wait_for_stage(child, awaited);
        if (WIFSIGNALED(status)) {
            records::complain("stage " + std::to_string(stage) + " was killed by signal " +
                              std::to_string(WTERMSIG(status)) + " (" + strsignal(WTERMSIG(status)) +
                              "); finished phases are kept, and `sonde clean` removes what it left on the target");
            return phases::exit_failed;
        }
        if (WEXITSTATUS(status) != phases::exit_done) {
            return WEXITSTATUS(status);
        }
    }
    return phases::exit_done;
}

int run(RunArguments arguments) {
    plan::Plan plan = plan::parse_plan(read_all(arguments.plan));
    runs::check_backends(plan, false);
    if (arguments.dry_run) {
        return dry_run(plan);
    }
    if (arguments.run_id.empty()) {
        arguments.run_id = make_run_id(plan.id);
    }
    const bool launched =
        ranks::detect_launcher() != "none" && arguments.launch != "single" && arguments.launch != "forked";
    const int stages = phases::stages_of(plan).back() + 1;
    if (arguments.stage >= stages) {
        throw plan::PlanError("--stage " + std::to_string(arguments.stage) + ": the plan has only " +
                              std::to_string(stages) + " stages, counted from 0");
    }
    if (stages > 1 && arguments.stage < 0) {
        if (launched) {
            throw plan::PlanError(
                "the plan has phases with process = \"separate\": under a launcher start each stage on its "
                "own with --stage 0 to " +
                std::to_string(stages - 1) + " (`sonde run` does)");
        }
        if (arguments.plan == "-") {
            throw plan::PlanError("a plan with process = \"separate\" must be in a file, not on standard input");
        }
        return run_stages(arguments, stages);
    }
    if (launched && plan.tasks.processes > 1) {
        throw plan::PlanError("plan: tasks.processes is " + std::to_string(plan.tasks.processes) +
                              ", but a launcher started this engine: leave it out, the launcher decides");
    }
    ranks::FormRequest request;
    request.launch = launch_named(arguments.launch).value_or(ranks::Launch::automatic);
    request.processes = plan.tasks.processes;
    request.mpi_module = arguments.mpi_module;
    for (const plan::Phase& phase : plan.phases) {
        request.need_mpi = request.need_mpi || phase.data.backend == "mpiio";
    }
    const std::unique_ptr<ranks::Team> team = ranks::Team::form(request);
    const bool root = team->place().root();
    install_signals(team->control(), root);
    phases::RunOptions options{arguments.record, arguments.run_id, arguments.command, arguments.stage};
    return work_together(*team, [&](int& code) {
        // All processes agree on the id: the directory is named after it.
        options.run_id = team->broadcast(options.run_id);
        code = runs::execute(plan, options, *team);
    });
}

}  // namespace

int command_run(const RunArguments& arguments) {
    // Before the processes have met, each of a launcher's processes finds the same mistake: one of them says it. What
    // may be wrong on one node only (a missing library, say) is said once a node.
    const ranks::Launched how = ranks::launched();
    try {
        return run(arguments);
    } catch (const plan::PlanError& error) {
        if (how.process == 0) {
            records::complain(error.what());
        }
        return phases::exit_plan;
    } catch (const std::exception& error) {
        if (how.process == 0 || (how.local == 0 && !how.one_node())) {
            records::complain(error.what());
        }
        return phases::exit_environment;
    }
}

namespace {

/// Each item that a phase on a tree works on, when it works on all of them.
void list_items(const plan::Phase& phase, const std::string& root, const TaskMap& tasks) {
    const plan::Meta& meta = *phase.meta;
    const patterns::TreeShape shape(meta.tree);
    const std::uint64_t items =
        plan::on_items(phase.op) ? std::min(shape.items(), phase.stop.items.value_or(shape.items())) : 0;
    for (int task = 0; task < tasks.tasks(); ++task) {
        const int owner = files::shifted(phase.shift, task, tasks);
        for (std::uint64_t k = 0; k < items; ++k) {
            const patterns::TreeShape::Place place = shape.place(k);
            std::string path = root + "/";
            shape.append_path(path, files::branch_of(meta, owner, tasks), place.copy, place.directory);
            path += "/" + patterns::item_stem(meta, owner) + std::to_string(place.number);
            std::cout << nlohmann::ordered_json{{"phase", phase.id}, {"task", task}, {"path", records::json_text(path)}}
                      << '\n';
        }
    }
}

}  // namespace

int command_touched(const std::string& plan_file) {
    try {
        const plan::Plan plan = plan::parse_plan(read_all(plan_file));
        const TaskMap tasks{plan.tasks.threads, std::vector<int>(static_cast<std::size_t>(plan.tasks.processes), 0),
                            plan.tasks.used};
        runs::check_extent(plan, tasks, records::node_memory_bytes());
        std::ios::sync_with_stdio(false);
        for (const plan::Phase& phase : plan.phases) {
            if (phase.meta) {
                list_items(phase, plan.target.path, tasks);
                continue;
            }
            const files::FileMap map(plan.target.path, phase.data.files, tasks);
            const std::uint64_t segments = files::segments_of(phase, tasks, records::node_memory_bytes());
            for (int task = 0; task < tasks.tasks(); ++task) {
                const int owner = plan::writes(phase.op) ? task : files::shifted(phase.shift, task, tasks);
                const int files = phase.files.empty() ? map.files_per_task() : static_cast<int>(phase.files.size());
                for (int n = 0; n < files; ++n) {
                    const int k = phase.files.empty() ? n : phase.files[static_cast<std::size_t>(n)];
                    const patterns::Geometry geometry(phase.data.access, segments, map.share(owner),
                                                      map.file_number(owner, k));
                    for (std::uint64_t i = 0; i < geometry.operations(); ++i) {
                        std::cout << nlohmann::ordered_json{{"phase", phase.id},
                                                            {"task", task},
                                                            {"file", map.file_number(owner, k)},
                                                            {"path", records::json_text(map.path(owner, k))},
                                                            {"offset", geometry.offset_of(i)},
                                                            {"length", geometry.transfer()}}
                                  << '\n';
                    }
                }
            }
        }
        std::cout.flush();
        if (!std::cout) {
            records::complain("the list could not be written to standard output");
            return phases::exit_environment;
        }
        return phases::exit_done;
    } catch (const std::exception& error) {
        records::complain(error.what());
        return phases::exit_plan;
    }
}

}  // namespace sonde
