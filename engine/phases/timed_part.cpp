// SPDX-License-Identifier: Apache-2.0
#include "phases/phase_run.hpp"

#include "phases/crew.hpp"
#include "phases/prepare.hpp"
#include "phases/tree_jobs.hpp"
#include "records/text.hpp"
#include "treatments/treatments.hpp"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>
#include <algorithm>
#include <cstring>
#include <fstream>
#include <system_error>

namespace sonde::phases {

using meters::StreamMeter;
using nlohmann::json;
using nlohmann::ordered_json;

namespace {

/// CPU time that all processes of this node have used so far, in seconds (user, nice, system, irq, steal).
double node_cpu_seconds() {
    std::ifstream file("/proc/stat");
    std::string label;
    double user = 0, nice = 0, system = 0, idle = 0, wait = 0, irq = 0, soft = 0, steal = 0;
    file >> label >> user >> nice >> system >> idle >> wait >> irq >> soft >> steal;
    return (user + nice + system + irq + soft + steal) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

}  // namespace

/// Data files of the tasks of this node, as this phase uses them.
std::vector<std::string> PhaseRun::node_files() const {
    std::vector<std::string> files;
    if (!backend_.traits.needs_files || phase_.meta) {
        return files;
    }
    for (int task = 0; task < context_.tasks.tasks(); ++task) {
        if (context_.tasks.node_of(task) != context_.team.place().node) {
            continue;
        }
        const int owner = plan::writes(phase_.op) ? task : files::shifted(phase_.shift, task, context_.tasks);
        for (const plan::Lane& lane : phase_.lanes) {
            if (!lane.write) {
                files.push_back(map_.path(owner, lane.file));
            }
        }
        for (const int k : phase_.files) {
            files.push_back(map_.path(owner, k));
        }
        for (int k = 0; phase_.files.empty() && phase_.lanes.empty() && k < map_.files_per_task(); ++k) {
            files.push_back(map_.path(owner, k));
        }
    }
    std::sort(files.begin(), files.end());
    files.erase(std::unique(files.begin(), files.end()), files.end());
    return files;
}

/// True when nobody has a complaint; otherwise the root takes the first one as the outcome.
bool PhaseRun::agree(const std::string& complaint, int code) {
    ranks::Team& team = context_.team;
    if (team.all(complaint.empty())) {
        return true;
    }
    // Only leaders' texts travel: the others hand theirs over through the shared error slots.
    ranks::NodeControl& control = team.control();
    if (!complaint.empty() && control.error_count.fetch_add(1) == 0) {
        ranks::ErrorSlot& slot = control.errors[0];
        std::snprintf(slot.text, sizeof slot.text, "%s", complaint.c_str());
        slot.code = code;
        slot.state.store(2);
    }
    const bool whole = team.all(true);
    const ranks::ErrorSlot& first = control.errors[0];
    const std::string joined =
        team.reduce(first.state.load() == 2 ? std::string(first.text) : std::string(),
                    [](const std::string& a, const std::string& b) { return a.empty() ? b : a; });
    if (!context_.root()) {
        return false;
    }
    if (!joined.empty()) {
        context_.outcome.set(code, "failed", joined);
    } else if (!whole) {
        context_.outcome.set(exit_failed, "failed", lost_sentence(context_, "before phase " + phase_.id));
    } else {
        context_.outcome.set(code, "failed", "phase " + phase_.id + " could not be prepared");
    }
    return false;
}

bool PhaseRun::treat() {
    static ranks::NodeControl* control = nullptr;
    control = &context_.team.control();
    const auto stopped = []() { return control->stop.load() != 0; };
    const bool leader = context_.team.place().leader();
    const std::vector<std::string> files =
        leader && (!phase_.before.empty() || plan::reads(phase_.op)) ? node_files() : std::vector<std::string>{};
    for (const plan::Treatment& treatment : phase_.before) {
        json mine = json::array();
        if (leader) {
            const treatments::TreatmentResult result = treatments::apply(treatment, context_.directory, files, stopped);
            held_.push_back(result.held);
            static constexpr const char* outcomes[] = {"done", "failed", "skipped"};
            json line{{"phase", phase_.id},
                      {"kind", treatments::name(treatment.kind)},
                      {"need", treatment.required ? "required" : "best_effort"},
                      {"outcome", outcomes[static_cast<int>(result.outcome)]},
                      {"seconds", result.seconds},
                      {"text", records::json_text(result.text)},
                      {"node", context_.team.place().node}};
            if (result.before.known) {
                line["resident_before"] = result.before.share();
            }
            if (result.after.known) {
                line["resident_after"] = result.after.share();
            }
            mine.push_back(line);
        }
        const std::string all = context_.team.reduce(mine.dump(), [](const std::string& a, const std::string& b) {
            json joined = json::parse(a);
            const json more = json::parse(b);
            joined.insert(joined.end(), more.begin(), more.end());
            return joined.dump();
        });
        std::string complaint;
        if (context_.root()) {
            for (const json& line : json::parse(all)) {
                context_.record->line("treatment", ordered_json(line));
                if (treatment.required && line.at("outcome") != "done" && complaint.empty()) {
                    complaint = "phase " + phase_.id + ": the required treatment " + treatments::name(treatment.kind) +
                                " failed: " + line.at("text").get<std::string>();
                }
            }
        }
        // Asked together: a signal may have reached only some of them yet.
        if (context_.team.maximum(context_.team.control().stop.load()) != 0) {
            return true;
        }
        if (!agree(complaint, exit_environment)) {
            return false;
        }
    }
    if (leader && plan::reads(phase_.op) && backend_.traits.needs_files) {
        residency_ = treatments::measure_residency(files);
    }
    return true;
}

bool PhaseRun::prepare() {
    if (!agree(phase_.meta ? prepare_tree(context_, index_) : prepare_files(context_, index_, map_), exit_failed)) {
        return false;
    }
    return true;
}

bool PhaseRun::set_up(bool verification) {
    verification_ = verification;
    std::string complaint;
    int code = exit_environment;
    try {
        const ranks::Place& place = context_.team.place();
        const std::vector<StreamPlace> places = streams_of(phase_, context_.tasks, place.process);
        jobs_.clear();
        streams_.clear();
        jobs_.reserve(places.size());
        if (base_ == nullptr) {
            base_ = std::make_unique<payload::Base>(phase_.data.payload, context_.manifest.period);
        }
        if (phase_.op == plan::Op::walk) {
            make_walk_board();
        }
        for (std::size_t i = 0; i < places.size(); ++i) {
            workloads::StreamJob job = job_of(context_, index_, places[i], map_);
            job.stream = static_cast<int>(i);
            jobs_.push_back(job);
        }
        const int per_process = static_cast<int>(places.size());
        for (std::size_t i = 0; i < places.size(); ++i) {
            StreamMeter& meter = context_.board->meter(place.local * per_process + static_cast<int>(i));
            std::memset(static_cast<void*>(&meter), 0, StreamMeter::bytes_for(context_.plan.observe.max_slices));
            new (&meter) StreamMeter;
            meter.task = places[i].task;
            meter.lane = places[i].lane;
            if (places[i].task == nobody) {
                streams_.push_back(
                    workloads::Stream::make(jobs_[i], *base_, context_.team, context_.board->clock, meter));
                continue;
            }
            if (plan::on_files(phase_.op) || phase_.meta) {
                meter.planned_operations = phase_.stop.time || phase_.stop.min_time ? 0 : jobs_[i].files;
                streams_.push_back(
                    workloads::Stream::make(jobs_[i], *base_, context_.team, context_.board->clock, meter));
                continue;
            }
            // All files of a task are alike, so the first one stands for them; it throws when there is nothing to read.
            const workloads::FileJob first = jobs_[i].file(0);
            if (!phase_.stop.time && !phase_.stop.min_time && !verification) {
                meter.planned_operations = first.operations * jobs_[i].files;
                meter.planned_bytes = meter.planned_operations * phase_.data.access.transfer;
            }
            streams_.push_back(workloads::Stream::make(jobs_[i], *base_, context_.team, context_.board->clock, meter));
        }
        context_.team.arrange(per_process);
    } catch (const plan::PlanError& error) {
        complaint = error.what();
        code = exit_plan;
    } catch (const std::exception& error) {
        complaint = "phase " + phase_.id + ": " + error.what();
    }
    const bool good = agree(
        complaint, static_cast<int>(context_.team.maximum(static_cast<std::uint64_t>(complaint.empty() ? 0 : code))));
    if (context_.team.place().leader()) {
        int streams = 0;
        for (int p = 0; p < context_.team.place().processes; ++p) {
            if (context_.team.place().node_of[static_cast<std::size_t>(p)] == context_.team.place().node) {
                streams += static_cast<int>(streams_of(phase_, context_.tasks, p).size());
            }
        }
        context_.board->streams.store(streams);
    }
    return good;
}

/// Empties what the last phase left in the shared control block, before anybody can write there again.
void PhaseRun::reset() {
    if (context_.team.place().leader()) {
        ranks::NodeControl& control = context_.team.control();
        control.first_done.store(0);
        control.wearout_target.store(0);
        control.error_count.store(0);
        for (ranks::ErrorSlot& slot : control.errors) {
            slot.state.store(0);
        }
    }
    context_.team.all(true);
}

/// The board of a walk lives as long as the run; its streams begin with empty stacks.
void PhaseRun::make_walk_board() {
    const int streams = context_.tasks.tasks_on(context_.team.place().node);
    if (context_.walk == nullptr) {
        context_.walk =
            reinterpret_cast<workloads::WalkBoard*>(context_.team.shared(workloads::WalkBoard::bytes_for(streams)));
    }
    if (context_.team.place().leader()) {
        context_.walk->reset(streams);
    }
}

/// False when the task threads could not be made; then nothing has run.
bool PhaseRun::time_it() {
    ranks::Team& team = context_.team;
    Board& board = *context_.board;
    Crew crew([&](std::size_t i) { work(i); });
    std::string complaint;
    try {
        crew.enlist(streams_.size());
    } catch (const std::system_error& error) {
        complaint = "phase " + phase_.id + ": process " + std::to_string(team.place().process) + " cannot start " +
                    std::to_string(streams_.size()) + " task threads (" + error.code().message() +
                    "): ask for fewer tasks.threads or raise `ulimit -u`";
    }
    if (!agree(complaint, exit_environment)) {
        return false;
    }
    if (team.place().leader()) {
        drift_ns_ = board.clock.recalibrate();
        cpu_before_ = node_cpu_seconds();
    }
    if (team.place().nodes > 1) {
        team.align_clocks();
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
    if (team.place().leader()) {
        board.phase.store(-1);
        other_cpu_ = node_cpu_seconds() - cpu_before_;
        drift_ns_ = board.clock.recalibrate();
    }
    return true;
}

/// What each thread does.
void PhaseRun::work(std::size_t stream) {
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

/// Totals of this node by its leader, then of all nodes at the root.
void PhaseRun::collect() {
    ranks::Team& team = context_.team;
    Board& board = *context_.board;
    std::uint32_t doublings = 0;
    const bool leader = team.place().leader();
    for (int i = 0; leader && i < board.streams.load(); ++i) {
        doublings = std::max(doublings, board.meter(i).slices_doublings);
    }
    doublings = static_cast<std::uint32_t>(team.maximum(doublings));
    totals_ = results::Totals{};
    const std::int64_t width = context_.plan.observe.slice << doublings;
    for (int i = 0; leader && i < board.streams.load(); ++i) {
        // Every node's phase time begins at the same moment of the root's clock, so offsets are already taken out.
        if (board.meter(i).task == nobody) {
            continue;
        }
        totals_.add(board.meter(i), team.place().node, context_.plan.observe.max_slices, width, doublings, 0);
    }
    if (leader) {
        double own = 0;
        for (const results::TaskRow& row : totals_.rows) {
            own += static_cast<double>(row.user_ns + row.system_ns) / 1e9;
        }
        other_cpu_ = std::max(0.0, other_cpu_ - own);
    }
    if (team.place().nodes > 1) {
        const std::string joined =
            team.reduce(leader ? totals_.pack() : std::string(), [](const std::string& a, const std::string& b) {
                results::Totals sum = results::Totals::unpack(a);
                sum.join(results::Totals::unpack(b));
                return sum.pack();
            });
        if (context_.root()) {
            totals_ = results::Totals::unpack(joined);
        }
    }
}

bool run_phase(Context& context, std::size_t index, HalfRates& half) {
    return PhaseRun(context, index, half).run();
}

}  // namespace sonde::phases
