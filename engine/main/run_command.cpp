// SPDX-License-Identifier: Apache-2.0
#include "main/commands.hpp"
#include "main/launch_names.hpp"
#include "main/plan_commands.hpp"
#include "main/signals.hpp"
#include "main/team_work.hpp"
#include "phases/stages.hpp"
#include "plan/parse.hpp"
#include "ranks/team_factory.hpp"
#include "records/text.hpp"
#include "runs/capabilities.hpp"
#include "runs/execute.hpp"
#include "runs/process_venue.hpp"
#include "runs/run_directory.hpp"
#include "runs/target_checks.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

namespace sonde {
namespace {

/// Waits for the process of a stage and forwards signals to it. The signals are blocked, so that a signal between two
/// stages reaches the next stage, which then ends in good order.
int wait_for_stage(pid_t child, const sigset_t& awaited) {
    for (;;) {
        int status = 0;
        const pid_t ended = waitpid(child, &status, WNOHANG);
        if (ended == child) {
            return status;
        }
        siginfo_t info{};
        const int number = sigwaitinfo(&awaited, &info);
        // A signal from the terminal (SI_KERNEL) reaches the whole process group directly.
        if (number > 0 && number != SIGCHLD && info.si_code != SI_KERNEL) {
            kill(child, number);
        }
    }
}

/// Forks one process per stage, so that a later stage inherits no memory or open files of an earlier one.
int run_stages(const RunArguments& arguments, int stages) {
    const sigset_t awaited = make_stop_signal_set(true);
    sigprocmask(SIG_BLOCK, &awaited, nullptr);
    const pid_t parent = getpid();
    for (int stage = 0; stage < stages; ++stage) {
        std::fflush(nullptr);
        const pid_t child = fork();
        if (child < 0) {
            records::print_error("cannot start a process for stage " + std::to_string(stage) + ": " +
                                 std::strerror(errno) + "; check `ulimit -u`");
            return phases::exit_environment;
        }
        if (child == 0) {
            prctl(PR_SET_PDEATHSIG, SIGTERM);  // without the parent no next stage would start
            if (getppid() != parent) {
                _exit(phases::exit_interrupted);
            }
            RunArguments stage_arguments = arguments;
            stage_arguments.stage = stage;
            std::exit(command_run(stage_arguments));
        }
        const int status = wait_for_stage(child, awaited);
        if (WIFSIGNALED(status)) {
            records::print_error("stage " + std::to_string(stage) + " was killed by signal " +
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

int run_plan(RunArguments arguments) {
    plan::Plan plan = plan::parse_plan(read_plan(arguments.plan), runs::list_capabilities());
    if (arguments.dry_run) {
        return print_dry_run(plan);
    }
    if (arguments.run_id.empty()) {
        arguments.run_id = runs::make_run_id(plan.id);
    }
    const bool launched =
        ranks::launcher_name() != "none" && arguments.launch != "single" && arguments.launch != "forked";
    const int stages = phases::number_stages(plan).back() + 1;
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
    ranks::TeamRequest request;
    request.launch = find_launch(arguments.launch).value_or(ranks::LaunchMode::automatic);
    request.processes = plan.tasks.processes;
    request.mpi_module = arguments.mpi_module;
    for (const plan::Phase& phase : plan.phases) {
        const plan::BackendTraits traits = runs::list_capabilities().find_traits(phase.data.backend);
        request.need_mpi = request.need_mpi || traits.needs_mpi;
        request.prefer_site = request.prefer_site || traits.dataset_element_bytes > 0;
    }
    const std::unique_ptr<ranks::Team> team = ranks::form_team(request);
    const bool root = team->location().is_root();
    install_signals(team->control(), root);
    phases::RunOptions options{arguments.record, arguments.run_id, arguments.command, arguments.stage};
    options.allow_device = arguments.allow_device;
    options.destroy = arguments.destroy;
    return run_in_team(*team, [&](int& code) {
        // All processes use the same id, because it names the run directory.
        options.run_id = team->broadcast(options.run_id);
        runs::ProcessVenue venue(plan, options, *team);
        code = runs::execute(venue);
    });
}

}  // namespace

int command_run(const RunArguments& arguments) {
    // Before the team exists, every process detects the same error, so only one prints it. Errors that may affect a
    // single node (for example a missing library) are printed once per node.
    const ranks::LaunchEnvironment launch = ranks::detect_launch();
    try {
        return run_plan(arguments);
    } catch (const plan::PlanError& error) {
        if (launch.process == 0) {
            records::print_error(error.what());
        }
        return phases::exit_plan;
    } catch (const ranks::CommonError& error) {
        if (launch.process == 0) {
            records::print_error(error.what());
        }
        return phases::exit_environment;
    } catch (const std::exception& error) {
        if (launch.process == 0 || (launch.local_index == 0 && !launch.is_one_node())) {
            records::print_error(error.what());
        }
        return phases::exit_environment;
    }
}

}  // namespace sonde
