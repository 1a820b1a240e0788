// SPDX-License-Identifier: Apache-2.0
#include "virtual/simulation.hpp"

#include "payload/payload.hpp"
#include "phases/announce.hpp"
#include "phases/facts.hpp"
#include "phases/findings.hpp"
#include "phases/lines.hpp"
#include "phases/remember.hpp"
#include "plan/parse.hpp"
#include "runs/extent.hpp"

#include <algorithm>

#include <sys/mman.h>

namespace sonde::simulate {
namespace {

/// What the simulator does otherwise than the engine, for want of bytes: nothing is stored, so nothing is made or
/// verified, and no file of operations is written beside it.
plan::Plan without_bytes(plan::Plan plan, int processes) {
    if (processes > 0) {
        plan.tasks.processes = processes;
    }
    const auto empty = [](plan::Data& data) {
        data.payload.kind = plan::PayloadKind::zero;
        data.payload.period = 65536;
        data.verify = plan::Verify::none;
        data.paced.virtual_clock = true;
    };
    empty(plan.data);
    for (plan::Phase& phase : plan.phases) {
        empty(phase.data);
        phase.operations_file.clear();
    }
    return plan;
}

/// Nodes that a run of this plan takes: all that the user says, or as few as have a core for each task.
int nodes_for(const plan::Plan& plan, const SiteModel& site, int wanted) {
    const auto there = static_cast<int>(site.clients.size());
    if (wanted > there) {
        throw SiteError("--nodes " + std::to_string(wanted) + ": mount " + site.mount + " of system " + site.system +
                        " is on " + std::to_string(there) + " nodes");
    }
    if (wanted > plan.tasks.processes) {
        throw SiteError("--nodes " + std::to_string(wanted) + ": the plan has only " +
                        std::to_string(plan.tasks.processes) + " processes");
    }
    if (wanted > 0) {
        return wanted;
    }
    const int cores = std::max(1, static_cast<int>(site.clients.front().cores));
    const int tasks = plan.tasks.processes * plan.tasks.threads;
    return std::clamp((tasks + cores - 1) / cores, 1, std::min(there, plan.tasks.processes));
}

files::TaskMap place_tasks(const plan::Plan& plan, const SiteModel& site, int wanted) {
    files::TaskMap tasks;
    tasks.threads = plan.tasks.threads;
    tasks.used = plan.tasks.used;
    const auto nodes = static_cast<std::int64_t>(nodes_for(plan, site, wanted));
    for (int process = 0; process < plan.tasks.processes; ++process) {
        tasks.node_of_process.push_back(static_cast<int>(process * nodes / plan.tasks.processes));
    }
    return tasks;
}

/// The machine with the stripes that the plan asks for, as if all its directories had them.
SiteModel striped(SiteModel site, const std::optional<plan::Striping>& wanted) {
    if (!wanted) {
        return site;
    }
    if (site.fs.local) {
        throw SiteError("target.striping: " + site.fs.id + " of system " + site.system +
                        " is local storage, which has no targets to choose: leave it out");
    }
    if (!wanted->pool.empty() && wanted->pool != site.mount) {
        throw SiteError("target.striping.pool: the files are simulated on " + site.mount +
                        "; choose the pool as the mount (--mount " + wanted->pool + ")");
    }
    site.fs.stripe_size = wanted->size.value_or(site.fs.stripe_size);
    site.fs.stripe_count = wanted->count.value_or(site.fs.stripe_count);
    if (wanted->start) {
        const auto first = std::find_if(site.targets.begin(), site.targets.end(),
                                        [&wanted](const TargetSite& one) { return one.index == *wanted->start; });
        if (first == site.targets.end()) {
            throw SiteError("target.striping.start: " + site.fs.id + " has no target of index " +
                            std::to_string(*wanted->start));
        }
        site.fs.stripe_start = static_cast<std::uint32_t>(first - site.targets.begin());
    }
    return site;
}

std::uint64_t largest_memory(const SiteModel& site) {
    std::uint64_t most = 0;
    for (const ClientSite& client : site.clients) {
        most = std::max(most, client.memory);
    }
    return most > 0 ? most : std::uint64_t{64} << 30U;
}

}  // namespace

Simulation::Simulation(plan::Plan plan, SiteModel site, const SimulationOptions& options)
    : plan_(without_bytes(std::move(plan), options.processes)),
      options_(options),
      run_options_{options.record, options.run_id, options.command},
      machine_(striped(std::move(site), plan_.target.striping), {options.seed}, conductor_),
      team_(conductor_),
      context_{.plan = plan_,
               .options = run_options_,
               .team = team_,
               .tasks = place_tasks(plan_, machine_.site(), options.nodes),
               .node_memory = largest_memory(machine_.site())} {
    conductor_.use(machine_);
    context_.storage.directory =
        plan_.data.files.in_place()
            ? plan_.target.path
            : plan_.target.path + "/" +
                  (plan_.target.directory.empty() ? "sonde-" + options.run_id : plan_.target.directory);
    context_.storage.file_system = machine_.site().fs.kind;
    context_.manifest.files = plan_.data.files;
    context_.manifest.tasks = context_.tasks;
    context_.manifest.has_data = plan_.has_data;
    context_.manifest.period = payload::period_for(plan_.data.payload, 1);
    for (const Fault& fault : options.faults) {
        machine_.begin_fault(fault);
    }
    runs::check_tasks(plan_, context_.tasks);
    lay_board();
}

Simulation::~Simulation() {
    if (board_memory_ != nullptr) {
        munmap(board_memory_, board_bytes_);
    }
}

bool Simulation::run_phase(std::size_t index) {
    const plan::Phase& phase = plan_.phases[index];
    const files::FileMap map(context_.storage.directory, phase.data.files, context_.tasks);
    if (!treat(index)) {
        return false;
    }
    make_shared_files(phase, map);
    const treatments::Residency resident = residency(phase, map);
    std::vector<workloads::StreamJob> jobs = jobs_of(index, map);
    const phases::Measured measured = time(index, map, jobs, resident);
    const results::PhaseFacts facts = phases::facts_of(context_, phase, measured, resident);
    phases::write_lines(context_, index, measured.totals, facts, half_);
    if (facts.stopped_by != "error" && phase.measured) {
        phases::write_findings(context_, measured, facts, circumstances(index, resident));
        half_.remember(phase.op, results::rates_of(measured.totals, facts));
    }
    settle_errors(phase, measured);
    phases::remember(context_, index, measured.totals);
    return measured.stop == 0;
}

int Simulation::run() {
    const auto epoch = std::int64_t{0};
    writer_ = std::make_unique<records::Writer>(options_.record, epoch);
    writer_->keep_time([this] { return machine_.now(); });
    context_.at_root.record = writer_.get();
    write_head();
    try {
        for (std::size_t i = 0; i < plan_.phases.size(); ++i) {
            if (plan_.begin_limit && !plan::on_files(plan_.phases[i].op) && machine_.now() >= *plan_.begin_limit) {
                writer_->line("finding", {{"id", "not_begun"},
                                          {"phase", plan_.phases[i].id},
                                          {"severity", "info"},
                                          {"text", "phase " + plan_.phases[i].id +
                                                       " was not begun: the run had lasted longer than limits.begin "
                                                       "allows"}});
                continue;
            }
            context_.begun = i + 1;
            if (!run_phase(i)) {
                break;
            }
        }
    } catch (const plan::PlanError& error) {
        context_.at_root.outcome.set(phases::exit_plan, error.what());
    }
    write_end();
    write_traces();
    return context_.at_root.outcome.code;
}

}  // namespace sonde::simulate
