// SPDX-License-Identifier: Apache-2.0
#include "virtual/simulation.hpp"

#include "payload/payload.hpp"
#include "phases/findings.hpp"
#include "phases/manifest_update.hpp"
#include "phases/phase_begin.hpp"
#include "phases/phase_facts.hpp"
#include "phases/result_lines.hpp"
#include "plan/plan_error.hpp"
#include "runs/footprint.hpp"

#include <algorithm>

#include <sys/mman.h>

namespace sonde::simulate {
namespace {

/// The plan without payload, verification and files of operations, since the simulator stores no bytes.
plan::Plan remove_payload(plan::Plan plan, int processes) {
    if (processes > 0) {
        plan.tasks.processes = processes;
    }
    const auto remove = [](plan::Data& data) {
        data.payload.kind = plan::PayloadKind::zero;
        data.payload.period = 65536;
        data.verify = plan::Verify::none;
        data.paced.virtual_clock = true;
    };
    remove(plan.data);
    for (plan::Phase& phase : plan.phases) {
        remove(phase.data);
        phase.operations_file.clear();
    }
    return plan;
}

/// Nodes of a run: `requested`, or as few as have a core for each task where it is 0. Throws SiteError.
int choose_node_count(const plan::Plan& plan, const SiteModel& site, int requested) {
    const auto available = static_cast<int>(site.clients.size());
    if (requested > available) {
        throw SiteError("--nodes " + std::to_string(requested) + ": mount " + site.mount + " of system " + site.system +
                        " is on " + std::to_string(available) + " nodes");
    }
    if (requested > plan.tasks.processes) {
        throw SiteError("--nodes " + std::to_string(requested) + ": the plan has only " +
                        std::to_string(plan.tasks.processes) + " processes");
    }
    if (requested > 0) {
        return requested;
    }
    const int cores = std::max(1, static_cast<int>(site.clients.front().cores));
    const int tasks = plan.tasks.processes * plan.tasks.threads;
    return std::clamp((tasks + cores - 1) / cores, 1, std::min(available, plan.tasks.processes));
}

files::TaskMap place_tasks(const plan::Plan& plan, const SiteModel& site, int requested_nodes) {
    files::TaskMap tasks;
    tasks.threads = plan.tasks.threads;
    tasks.used = plan.tasks.used;
    const auto nodes = static_cast<std::int64_t>(choose_node_count(plan, site, requested_nodes));
    for (int process = 0; process < plan.tasks.processes; ++process) {
        tasks.node_of_process.push_back(static_cast<int>(process * nodes / plan.tasks.processes));
    }
    return tasks;
}

/// The site with the plan's striping as the default layout of its file system. Throws SiteError.
SiteModel apply_striping(SiteModel site, const std::optional<plan::Striping>& striping) {
    if (!striping) {
        return site;
    }
    if (site.fs.local) {
        throw SiteError("target.striping: " + site.fs.id + " of system " + site.system +
                        " is local storage, which has no targets to choose: leave it out");
    }
    if (!striping->pool.empty() && striping->pool != site.mount) {
        throw SiteError("target.striping.pool: the files are simulated on " + site.mount +
                        "; choose the pool as the mount (--mount " + striping->pool + ")");
    }
    site.fs.stripe_size = striping->size.value_or(site.fs.stripe_size);
    site.fs.stripe_count = striping->count.value_or(site.fs.stripe_count);
    if (striping->start) {
        const auto first =
            std::find_if(site.targets.begin(), site.targets.end(),
                         [&striping](const TargetSite& target) { return target.index == *striping->start; });
        if (first == site.targets.end()) {
            throw SiteError("target.striping.start: " + site.fs.id + " has no target of index " +
                            std::to_string(*striping->start));
        }
        site.fs.stripe_start = static_cast<std::uint32_t>(first - site.targets.begin());
    }
    return site;
}

std::uint64_t largest_memory(const SiteModel& site) {
    std::uint64_t largest = 0;
    for (const ClientSite& client : site.clients) {
        largest = std::max(largest, client.memory);
    }
    return largest > 0 ? largest : std::uint64_t{64} << 30U;
}

}  // namespace

Simulation::Simulation(plan::Plan plan, SiteModel site, const SimulationOptions& options)
    : plan_(remove_payload(std::move(plan), options.processes)),
      options_(options),
      run_options_{options.record, options.run_id, options.command},
      machine_(apply_striping(std::move(site), plan_.target.striping), {options.seed}, scheduler_),
      team_(scheduler_),
      context_{.plan = plan_,
               .options = run_options_,
               .team = team_,
               .tasks = place_tasks(plan_, machine_.site(), options.nodes),
               .node_memory = largest_memory(machine_.site())} {
    scheduler_.set_machine(machine_);
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
    allocate_board();
}

Simulation::~Simulation() {
    if (board_memory_ != nullptr) {
        munmap(board_memory_, board_bytes_);
    }
}

bool Simulation::run_phase(std::size_t index) {
    const plan::Phase& phase = plan_.phases[index];
    const files::FileMap map(context_.storage.directory, phase.data.files, context_.tasks);
    if (!apply_treatments(index)) {
        return false;
    }
    create_shared_files(phase, map);
    const treatments::Residency residency = compute_residency(phase, map);
    std::vector<workloads::StreamJob> jobs = make_jobs(index, map);
    const phases::TimedResult measured = measure_phase(index, map, jobs, residency);
    const results::PhaseFacts facts = phases::collect_phase_facts(context_, phase, measured, residency);
    phases::write_result_lines(context_, index, measured.totals, facts, half_rates_);
    if (facts.stopped_by != "error" && phase.measured) {
        phases::write_findings(context_, measured, facts, make_circumstances(index, residency));
        half_rates_.add(phase.op, results::compute_rates(measured.totals, facts));
    }
    write_errors(phase, measured);
    phases::update_manifest(context_, index, measured.totals);
    return measured.stop == 0;
}

int Simulation::run() {
    const auto epoch = std::int64_t{0};
    writer_ = std::make_unique<records::Writer>(options_.record, epoch);
    writer_->keep_time([this] { return machine_.now(); });
    context_.root_state.record = writer_.get();
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
            context_.phases_begun = i + 1;
            if (!run_phase(i)) {
                break;
            }
        }
    } catch (const plan::PlanError& error) {
        context_.root_state.outcome.set(phases::exit_plan, error.what());
    }
    write_end();
    write_traces();
    return context_.root_state.outcome.code;
}

}  // namespace sonde::simulate
