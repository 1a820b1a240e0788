// SPDX-License-Identifier: Apache-2.0
#include "phases/timed_part.hpp"

#include "files/layout_source.hpp"
#include "phases/agree.hpp"
#include "phases/crew.hpp"
#include "phases/gather.hpp"
#include "phases/layouts.hpp"
#include "plan/parse.hpp"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>
#include <algorithm>
#include <cstring>
#include <fstream>
#include <new>
#include <nlohmann/json.hpp>
#include <system_error>

namespace sonde::phases {
namespace {

using meters::StreamMeter;

/// CPU time that all processes of this node have used so far, in seconds (user, nice, system, irq, steal).
double node_cpu_seconds() {
    std::ifstream file("/proc/stat");
    std::string label;
    double user = 0, nice = 0, system = 0, idle = 0, wait = 0, irq = 0, soft = 0, steal = 0;
    file >> label >> user >> nice >> system >> idle >> wait >> irq >> soft >> steal;
    return (user + nice + system + irq + soft + steal) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

/// Streams of all processes of this node.
int streams_on_node(const Context& context, const plan::Phase& phase) {
    const ranks::Place& place = context.team.place();
    int streams = 0;
    for (int p = 0; p < place.processes; ++p) {
        if (place.node_of[static_cast<std::size_t>(p)] == place.node) {
            streams += static_cast<int>(streams_of(phase, context.tasks, p).size());
        }
    }
    return streams;
}

}  // namespace

void begin_counting(ranks::Team& team) {
    if (team.place().leader()) {
        ranks::NodeControl& control = team.control();
        control.first_done.store(0);
        control.wearout_target.store(0);
        control.error_count.store(0);
        for (ranks::ErrorSlot& slot : control.errors) {
            slot.state.store(0);
        }
    }
    team.all(true);
}

bool TimedPart::set_up(bool verification) {
    verification_ = verification;
    find_asker();
    std::string complaint;
    int code = exit_environment;
    try {
        make_streams(streams_of(phase_, context_.tasks, context_.team.place().process), verification);
    } catch (const plan::PlanError& error) {
        complaint = error.what();
        code = exit_plan;
    } catch (const std::exception& error) {
        complaint = "phase " + phase_.id + ": " + error.what();
    }
    const int worst = static_cast<int>(context_.team.maximum(static_cast<std::uint64_t>(complaint.empty() ? 0 : code)));
    const bool good = agree(context_, phase_.id, complaint, worst);
    if (context_.team.place().leader()) {
        context_.shared.board->streams.store(streams_on_node(context_, phase_));
    }
    return good;
}

void TimedPart::make_streams(const std::vector<StreamPlace>& places, bool verification) {
    jobs_.reserve(places.size());
    base_ = std::make_unique<payload::Base>(phase_.data.payload, context_.manifest.period);
    if (phase_.op == plan::Op::walk) {
        make_walk_board();
    }
    if (attributes_ && context_.shared.targets == nullptr) {
        context_.shared.targets =
            reinterpret_cast<meters::TargetBoard*>(context_.team.shared(sizeof(meters::TargetBoard)));
    }
    for (std::size_t i = 0; i < places.size(); ++i) {
        workloads::StreamJob job = job_of(context_, index_, places[i], map_);
        job.stream = static_cast<int>(i);
        job.stripes = ask_stripes_;
        jobs_.push_back(job);
    }
    Board& board = *context_.shared.board;
    const int per_process = static_cast<int>(places.size());
    for (std::size_t i = 0; i < places.size(); ++i) {
        StreamMeter& meter = board.meter(context_.team.place().local * per_process + static_cast<int>(i));
        new (&meter) StreamMeter;
        meter.task = places[i].task;
        meter.lane = places[i].lane;
        const bool whole_volume = !phase_.stop.time && !phase_.stop.min_time;
        if (places[i].task == nobody) {
            // It waits at the barriers and does nothing.
        } else if (plan::on_files(phase_.op) || phase_.meta) {
            meter.planned_operations = whole_volume ? jobs_[i].files : 0;
        } else {
            // All files of a task are alike, so the first one stands for them; it throws when there is nothing to read.
            const workloads::FileJob first = jobs_[i].file(0);
            if (whole_volume && !verification) {
                meter.planned_operations = first.operations * jobs_[i].files;
                meter.planned_bytes = meter.planned_operations * phase_.data.access.transfer;
            }
        }
        streams_.push_back(workloads::Stream::make(jobs_[i], *base_, context_.team, board.clock, meter));
    }
    context_.team.arrange(per_process);
}

/// The board of a walk lives as long as the run; its streams begin with empty stacks.
void TimedPart::make_walk_board() {
    const int streams = context_.tasks.tasks_on(context_.team.place().node);
    workloads::WalkBoard*& walk = context_.shared.walk;
    if (walk == nullptr) {
        walk = reinterpret_cast<workloads::WalkBoard*>(context_.team.shared(workloads::WalkBoard::bytes_for(streams)));
    }
    if (context_.team.place().leader()) {
        walk->reset(streams);
    }
}

bool TimedPart::run() {
    ranks::Team& team = context_.team;
    Board& board = *context_.shared.board;
    Crew crew([&](std::size_t i) { work(i); });
    std::string complaint;
    try {
        crew.enlist(streams_.size());
    } catch (const std::system_error& error) {
        complaint = "phase " + phase_.id + ": process " + std::to_string(team.place().process) + " cannot start " +
                    std::to_string(streams_.size()) + " task threads (" + error.code().message() +
                    "): ask for fewer tasks.threads or raise `ulimit -u`";
    }
    if (!agree(context_, phase_.id, complaint, exit_environment)) {
        return false;
    }
    double cpu_before = 0;
    if (team.place().leader()) {
        drift_ns_ = board.clock.recalibrate();
        cpu_before = node_cpu_seconds();
    }
    if (team.place().nodes > 1) {
        team.align_clocks();
        clock_ = {team.place().node, team.clock_offset_ns(), team.clock_error_ns(), 0, 0};
    }
    const std::uint64_t start = team.maximum(static_cast<std::uint64_t>(board.clock.now_ns() + team.clock_offset_ns()));
    if (team.place().leader()) {
        const std::int64_t here = static_cast<std::int64_t>(start) - team.clock_offset_ns();
        team.control().phase_start_ns.store(here);
        board.start_ns.store(here);
        board.phase.store(verification_ ? -1 : static_cast<int>(index_));
    }
    crew.start();
    if (!streams_.empty()) {
        work(0);
    }
    crew.join();
    stop_ = static_cast<std::uint32_t>(team.maximum(team.control().stop.load()));
    if (team.place().nodes > 1) {
        team.align_clocks();
        clock_.moved_ns = team.clock_offset_ns() - clock_.offset_ns;
        clock_.moved_error_ns = team.clock_error_ns() + clock_.error_ns;
    }
    if (team.place().leader()) {
        board.phase.store(-1);
        other_cpu_s_ = node_cpu_seconds() - cpu_before;
        drift_ns_ = board.clock.recalibrate();
    }
    return true;
}

/// What each thread does.
void TimedPart::work(std::size_t stream) {
    if (context_.plan.tasks.pin) {
        cpu_set_t all;
        CPU_ZERO(&all);
        const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
        CPU_SET(static_cast<std::size_t>(jobs_[stream].task) % static_cast<std::size_t>(cpus), &all);
        pthread_setaffinity_np(pthread_self(), sizeof all, &all);
    }
    if (context_.team.meet(static_cast<int>(stream))) {
        streams_[stream]->run();
    }
}

/// Whether operations are given to the targets that served them: on all processes as soon as one can do so.
void TimedPart::find_asker() {
    ask_stripes_ = {};
    attributes_ = false;
    if (!verification_ && !plan::on_files(phase_.op) && may_have_layouts(context_, phase_)) {
        try {
            ask_stripes_ =
                files::stripes_asker(context_.storage.directory, context_.storage.file_system, context_.placed());
        } catch (const std::exception&) {
            ask_stripes_ = {};  // this process tells nothing, and meets the others all the same
        }
        attributes_ = context_.team.maximum(ask_stripes_ ? 1 : 0) != 0;
    }
}

/// What the streams of this node have counted of each target, into the totals of its leader.
void TimedPart::add_targets(results::Totals& totals) {
    std::uint64_t doublings = 0;
    for (const auto& stream : streams_) {
        if (const meters::TargetsServed served = stream->targets(); served.meter != nullptr) {
            doublings = std::max<std::uint64_t>(doublings, served.meter->doublings());
        }
    }
    doublings = context_.team.maximum(doublings);
    meters::TargetBoard& board = *context_.shared.targets;
    for (const auto& stream : streams_) {
        board.add(stream->targets(), static_cast<std::uint32_t>(doublings));
    }
    context_.team.all(true);
    if (context_.team.place().leader()) {
        totals.targets = results::Targets::of(board, context_.plan.observe.slice << doublings);
        board.clear();
    }
}

Measured TimedPart::collect() {
    ranks::Team& team = context_.team;
    Board& board = *context_.shared.board;
    Measured measured{
        .totals = {}, .stop = stop_, .drift_ns = drift_ns_, .other_cpu_s = other_cpu_s_, .clocks = {}, .notes = {}};
    std::uint32_t doublings = 0;
    const bool leader = team.place().leader();
    for (int i = 0; leader && i < board.streams.load(); ++i) {
        doublings = std::max(doublings, board.meter(i).slices_doublings);
    }
    doublings = static_cast<std::uint32_t>(team.maximum(doublings));
    const std::int64_t width = context_.plan.observe.slice << doublings;
    for (int i = 0; leader && i < board.streams.load(); ++i) {
        // Every node's phase time begins at the same moment of the root's clock, so offsets are already taken out.
        if (board.meter(i).task != nobody) {
            measured.totals.add(board.meter(i), team.place().node, context_.plan.observe.max_slices, width, doublings,
                                0);
        }
    }
    if (leader) {
        double own_s = 0;
        for (const results::TaskRow& row : measured.totals.rows) {
            own_s += static_cast<double>(row.user_ns + row.system_ns) / 1e9;
        }
        measured.other_cpu_s = std::max(0.0, measured.other_cpu_s - own_s);
    }
    if (attributes_) {
        add_targets(measured.totals);
    }
    for (const auto& stream : streams_) {
        for (const std::string& note : stream->notes()) {
            ++measured.notes[note];
        }
    }
    if (team.place().nodes > 1) {
        const std::string joined = team.reduce(leader ? measured.totals.pack() : std::string(),
                                               [](const std::string& a, const std::string& b) {
                                                   results::Totals sum = results::Totals::unpack(a);
                                                   sum.join(results::Totals::unpack(b));
                                                   return sum.pack();
                                               });
        if (context_.root()) {
            measured.totals = results::Totals::unpack(joined);
        }
        measured.clocks = gather_clocks();
    }
    return measured;
}

std::vector<results::NodeClock> TimedPart::gather_clocks() {
    nlohmann::json mine = nlohmann::json::array();
    if (context_.team.place().leader()) {
        mine.push_back({clock_.node, clock_.offset_ns, clock_.error_ns, clock_.moved_ns, clock_.moved_error_ns});
    }
    std::vector<results::NodeClock> clocks;
    for (const nlohmann::json& one : gather(context_.team, mine)) {
        clocks.push_back({one.at(0), one.at(1), one.at(2), one.at(3), one.at(4)});
    }
    return clocks;
}

}  // namespace sonde::phases
