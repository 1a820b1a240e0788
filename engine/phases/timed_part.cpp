// SPDX-License-Identifier: Apache-2.0
#include "phases/timed_part.hpp"

#include "layouts/layout_queries.hpp"
#include "phases/collectives.hpp"
#include "phases/layout_line.hpp"
#include "phases/stream_threads.hpp"
#include "plan/plan_error.hpp"
#include "workloads/stream_factory.hpp"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <new>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <system_error>

namespace sonde::phases {
namespace {

using meters::StreamMeter;

/// CPU time of all processes of this node since boot, in seconds (user, nice, system, irq, steal).
double read_node_cpu_seconds() {
    std::ifstream file("/proc/stat");
    std::string label;
    double user = 0, nice = 0, system = 0, idle = 0, wait = 0, irq = 0, soft = 0, steal = 0;
    file >> label >> user >> nice >> system >> idle >> wait >> irq >> soft >> steal;
    return (user + nice + system + irq + soft + steal) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

/// Streams of all processes of this node.
int count_streams_on_node(const RunContext& context, const plan::Phase& phase) {
    const ranks::ProcessLocation& location = context.team.location();
    int streams = 0;
    for (int p = 0; p < location.processes; ++p) {
        if (location.node_of[static_cast<std::size_t>(p)] == location.node) {
            streams += static_cast<int>(assign_streams(phase, context.tasks, p).size());
        }
    }
    return streams;
}

}  // namespace

void reset_counters(ranks::Team& team) {
    if (team.location().is_leader()) {
        ranks::NodeControl& control = team.control();
        control.is_first_task_done.store(0);
        control.wearout_target.store(0);
        control.error_count.store(0);
        for (ranks::ErrorSlot& slot : control.errors) {
            slot.state.store(0);
        }
    }
    team.all_true(true);
}

bool TimedPart::create_streams(bool verification) {
    is_verification_ = verification;
    choose_stripe_query();
    std::string complaint;
    int code = exit_environment;
    try {
        make_streams(assign_streams(phase_, context_.tasks, context_.team.location().process), verification);
    } catch (const plan::PlanError& error) {
        complaint = error.what();
        code = exit_plan;
    } catch (const std::exception& error) {
        complaint = "phase " + phase_.id + ": " + error.what();
    }
    const int worst =
        static_cast<int>(context_.team.reduce_maximum(static_cast<std::uint64_t>(complaint.empty() ? 0 : code)));
    const bool good = no_process_has_problem(context_, phase_.id, complaint, worst);
    if (context_.team.location().is_leader()) {
        context_.shared.board->stream_count.store(count_streams_on_node(context_, phase_));
    }
    return good;
}

void TimedPart::make_streams(const std::vector<StreamAssignment>& assignments, bool verification) {
    jobs_.reserve(assignments.size());
    base_ = std::make_unique<payload::PayloadBase>(phase_.data.payload, context_.manifest.payload_period);
    if (phase_.op == plan::Op::walk) {
        make_walk_board();
    }
    if (counts_targets_ && context_.shared.targets == nullptr) {
        context_.shared.targets =
            reinterpret_cast<meters::TargetBoard*>(context_.team.allocate_shared(sizeof(meters::TargetBoard)));
    }
    for (std::size_t i = 0; i < assignments.size(); ++i) {
        workloads::StreamJob job = make_stream_job(context_, index_, assignments[i], map_);
        job.stream_index = static_cast<int>(i);
        job.target = &context_.plan.target;
        job.query_stripes = stripe_query_;
        open_root(job);
        jobs_.push_back(job);
    }
    ProgressBoard& board = *context_.shared.board;
    const int per_process = static_cast<int>(assignments.size());
    for (std::size_t i = 0; i < assignments.size(); ++i) {
        StreamMeter& meter = board.meter(context_.team.location().local_index * per_process + static_cast<int>(i));
        new (&meter) StreamMeter;
        meter.task = assignments[i].task;
        meter.duplex_stream = assignments[i].stream;
        const bool whole_volume = !phase_.stop.time && !phase_.stop.min_time;
        if (assignments[i].task == no_task) {
            // The stream only takes part in barriers.
        } else if (jobs_[i].replay) {
            meter.planned_operations = jobs_[i].replay->operations.size();
            meter.planned_bytes = jobs_[i].replay->bytes;
        } else if (plan::acts_on_files(phase_.op) || phase_.meta) {
            meter.planned_operations = whole_volume ? jobs_[i].file_count : 0;
        } else {
            // All files of a task are alike, so the first one is representative; make_file_job() throws when nothing is
            // readable.
            const workloads::FileJob first = jobs_[i].make_file_job(0);
            if (whole_volume && !verification) {
                meter.planned_operations = first.operation_count * jobs_[i].file_count;
                meter.planned_bytes = phase_.data.access.bytes_of(meter.planned_operations);
            }
        }
        streams_.push_back(workloads::make_stream(jobs_[i], *base_, context_.team, board.clock, meter));
    }
    context_.team.set_streams_per_process(per_process);
}

/// Tasks open their files below a directory that is held: where others may rename entries of the target, the path of
/// the run directory can lead elsewhere at any time. Throws std::runtime_error.
void TimedPart::open_root(workloads::StreamJob& job) {
    if (job.root_path.empty() || !job.backend->traits.needs_files) {
        return;
    }
    const auto [root, is_new] = roots_.try_emplace(job.root_path);
    if (is_new) {
        root->second = files::ConfinedDirectory::open_made(job.root_path);
        if (!root->second && (job.tree || root->second.error() != ENOENT)) {
            throw std::runtime_error("cannot open " + job.root_path + ": " + std::strerror(root->second.error()));
        }
        if (root->second && !context_.plan.target.use_existing && !root->second.is_made_by_caller()) {
            throw std::runtime_error(job.root_path +
                                     " belongs to another user: somebody has replaced the run directory. Choose a "
                                     "target in which only you can rename entries");
        }
    }
    if (!root->second) {
        job.relative_path_begin =
            std::string::npos;  // its files were removed: the first call of each task reports ENOENT
        return;
    }
    job.root = root->second.descriptor();
    job.relative_path_begin = job.root_path.size() + 1;
    if (job.tree) {
        job.tree->directory = job.root;
    }
}

/// The walk board exists until the run ends; each walk starts with empty stacks.
void TimedPart::make_walk_board() {
    const int streams = context_.tasks.tasks_on(context_.team.location().node);
    workloads::WalkBoard*& walk = context_.shared.walk;
    if (walk == nullptr) {
        walk = reinterpret_cast<workloads::WalkBoard*>(
            context_.team.allocate_shared(workloads::WalkBoard::bytes_for(streams)));
    }
    if (context_.team.location().is_leader()) {
        walk->reset(streams);
    }
}

bool TimedPart::run() {
    ranks::Team& team = context_.team;
    ProgressBoard& board = *context_.shared.board;
    StreamThreads threads([&](std::size_t i) { run_stream(i); });
    std::string complaint;
    try {
        threads.create(streams_.size());
    } catch (const std::system_error& error) {
        complaint = "phase " + phase_.id + ": process " + std::to_string(team.location().process) + " cannot start " +
                    std::to_string(streams_.size()) + " task threads (" + error.code().message() +
                    "): ask for fewer tasks.threads or raise `ulimit -u`";
    }
    if (!no_process_has_problem(context_, phase_.id, complaint, exit_environment)) {
        return false;
    }
    double cpu_before = 0;
    if (team.location().is_leader()) {
        drift_ns_ = board.clock.recalibrate();
        cpu_before = read_node_cpu_seconds();
    }
    if (team.location().nodes > 1) {
        team.align_clocks();
        clock_ = {team.location().node, team.clock_offset_ns(), team.clock_error_ns(), 0, 0};
    }
    const std::uint64_t start =
        team.reduce_maximum(static_cast<std::uint64_t>(board.clock.now_ns() + team.clock_offset_ns()));
    if (team.location().is_leader()) {
        const std::int64_t node_start_ns = static_cast<std::int64_t>(start) - team.clock_offset_ns();
        team.control().phase_start_ns.store(node_start_ns);
        board.timed_part_start_ns.store(node_start_ns);
        board.phase_index.store(is_verification_ ? -1 : static_cast<int>(index_));
    }
    threads.start();
    if (!streams_.empty()) {
        run_stream(0);
    }
    threads.join();
    stop_reason_ = static_cast<std::uint32_t>(team.reduce_maximum(team.control().stop.load()));
    if (team.location().nodes > 1) {
        team.align_clocks();
        clock_.drift_ns = team.clock_offset_ns() - clock_.offset_ns;
        clock_.drift_error_ns = team.clock_error_ns() + clock_.error_ns;
    }
    if (team.location().is_leader()) {
        board.phase_index.store(-1);
        node_cpu_s_ = read_node_cpu_seconds() - cpu_before;
        duration_s_ = static_cast<double>(board.clock.now_ns() - board.timed_part_start_ns.load()) / 1e9;
        drift_ns_ = board.clock.recalibrate();
    }
    return true;
}

/// Body of each task thread.
void TimedPart::run_stream(std::size_t stream) {
    if (context_.plan.tasks.pin) {
        cpu_set_t all;
        CPU_ZERO(&all);
        const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
        CPU_SET(static_cast<std::size_t>(jobs_[stream].task) % static_cast<std::size_t>(cpus), &all);
        pthread_setaffinity_np(pthread_self(), sizeof all, &all);
    }
    if (context_.team.wait_for_all(static_cast<int>(stream))) {
        streams_[stream]->run();
    }
}

/// Decides whether operations are attributed to targets: in all processes as soon as one of them can read layouts.
void TimedPart::choose_stripe_query() {
    stripe_query_ = {};
    counts_targets_ = false;
    // In the file of a format the data lies behind metadata, so that its offsets are not those of the plan.
    const bool is_plain = backends::find_backend(phase_.data.backend)->traits.dataset_element_bytes == 0;
    if (!is_verification_ && is_plain && !plan::acts_on_files(phase_.op) && may_have_layouts(context_, phase_)) {
        try {
            stripe_query_ = layouts::make_stripes_reader(context_.storage.directory, context_.storage.file_system,
                                                         context_.ceph_placement());
        } catch (const std::exception&) {
            stripe_query_ = {};  // this process attributes nothing but takes part in the collectives
        }
        counts_targets_ = context_.team.reduce_maximum(stripe_query_ ? 1 : 0) != 0;
    }
}

/// Adds the target counters of this node's streams to the totals of its leader.
void TimedPart::add_targets(results::Totals& totals) {
    std::uint64_t doublings = 0;
    for (const auto& stream : streams_) {
        if (const meters::TargetsServed served = stream->targets(); served.meter != nullptr) {
            doublings = std::max<std::uint64_t>(doublings, served.meter->doublings());
        }
    }
    doublings = context_.team.reduce_maximum(doublings);
    meters::TargetBoard& board = *context_.shared.targets;
    for (const auto& stream : streams_) {
        board.add(stream->targets(), static_cast<std::uint32_t>(doublings));
    }
    context_.team.all_true(true);
    if (context_.team.location().is_leader()) {
        totals.targets = results::TargetTotals::from_board(board, context_.plan.observe.slice << doublings);
        board.clear();
    }
}

TimedResult TimedPart::collect() {
    ranks::Team& team = context_.team;
    ProgressBoard& board = *context_.shared.board;
    TimedResult result{.totals = {},
                       .stop_reason = stop_reason_,
                       .drift_ns = drift_ns_,
                       .other_cores = -1,
                       .clocks = {},
                       .missing_features = {}};
    std::uint32_t doublings = 0;
    const bool leader = team.location().is_leader();
    for (int i = 0; leader && i < board.stream_count.load(); ++i) {
        doublings = std::max(doublings, board.meter(i).slices_doublings);
    }
    doublings = static_cast<std::uint32_t>(team.reduce_maximum(doublings));
    const std::int64_t width = context_.plan.observe.slice << doublings;
    for (int i = 0; leader && i < board.stream_count.load(); ++i) {
        // Phase time begins at the same moment on all nodes, so clock offsets are already removed.
        if (board.meter(i).task != no_task) {
            result.totals.add(board.meter(i), team.location().node, context_.plan.observe.max_slices, width, doublings,
                              0);
        }
    }
    if (leader) {
        double own_s = 0;
        for (const results::TaskRow& row : result.totals.rows) {
            own_s += static_cast<double>(row.user_ns + row.system_ns) / 1e9;
        }
        // Accelerators may compute after the last byte: the time of the streams, not that of the rate, is the base.
        result.other_cores = std::max(0.0, node_cpu_s_ - own_s) / duration_s_;
    }
    if (counts_targets_) {
        add_targets(result.totals);
    }
    for (const auto& stream : streams_) {
        for (const std::string& note : stream->missing_features()) {
            ++result.missing_features[note];
        }
    }
    if (team.location().nodes > 1) {
        const std::string joined = team.reduce_text(leader ? result.totals.pack() : std::string(),
                                                    [](const std::string& a, const std::string& b) {
                                                        results::Totals sum = results::Totals::unpack(a);
                                                        sum.merge(results::Totals::unpack(b));
                                                        return sum.pack();
                                                    });
        if (context_.is_root()) {
            result.totals = results::Totals::unpack(joined);
        }
        result.clocks = gather_clocks();
    }
    return result;
}

std::vector<results::NodeClock> TimedPart::gather_clocks() {
    nlohmann::json own_list = nlohmann::json::array();
    if (context_.team.location().is_leader()) {
        own_list.push_back({clock_.node, clock_.offset_ns, clock_.error_ns, clock_.drift_ns, clock_.drift_error_ns});
    }
    std::vector<results::NodeClock> clocks;
    for (const nlohmann::json& row : gather_list(context_.team, own_list)) {
        clocks.push_back({row.at(0), row.at(1), row.at(2), row.at(3), row.at(4)});
    }
    return clocks;
}

}  // namespace sonde::phases
