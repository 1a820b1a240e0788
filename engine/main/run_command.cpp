// SPDX-License-Identifier: Apache-2.0
#include "main/commands.hpp"
#include "main/launch_names.hpp"
#include "main/read_plan.hpp"
#include "main/run_id.hpp"
#include "main/signals.hpp"
#include "main/team_work.hpp"
#include "phases/stages.hpp"
#include "plan/parse.hpp"
#include "ranks/launcher.hpp"
#include "records/text.hpp"
#include "runs/offer.hpp"
#include "runs/run.hpp"
#include "runs/target.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

namespace sonde {
namespace {

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
    plan::Plan plan = plan::parse_plan(read_plan(arguments.plan), runs::offer());
    if (arguments.dry_run) {
        return say_what_would_be_done(plan);
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
        request.need_mpi = request.need_mpi || runs::offer().traits_of(phase.data.backend).mpi;
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
    } catch (const ranks::CommonError& error) {
        if (how.process == 0) {
            records::complain(error.what());
        }
        return phases::exit_environment;
    } catch (const std::exception& error) {
        if (how.process == 0 || (how.local == 0 && !how.one_node())) {
            records::complain(error.what());
        }
        return phases::exit_environment;
    }
}

}  // namespace sonde
