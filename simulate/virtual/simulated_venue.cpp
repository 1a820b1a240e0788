// SPDX-License-Identifier: Apache-2.0
#include "virtual/simulated_venue.hpp"

#include "payload/payload.hpp"
#include "records/environment.hpp"
#include "runs/footprint.hpp"
#include "virtual/simulated_phase.hpp"
#include "virtual/unused_members.hpp"

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <new>
#include <nlohmann/json.hpp>

#include <sys/mman.h>

namespace sonde::simulate {
namespace {

using nlohmann::ordered_json;

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

/// Nodes of a run: `requested`, or as few as have a core for each task where it is 0. Throws SystemModelError.
int choose_node_count(const plan::Plan& plan, const SystemModel& site, int requested) {
    const auto available = static_cast<int>(site.clients.size());
    if (requested > available) {
        throw SystemModelError("--nodes " + std::to_string(requested) + ": mount " + site.mount + " of system " +
                               site.system + " is on " + std::to_string(available) + " nodes");
    }
    if (requested > plan.tasks.processes) {
        throw SystemModelError("--nodes " + std::to_string(requested) + ": the plan has only " +
                               std::to_string(plan.tasks.processes) + " processes");
    }
    if (requested > 0) {
        return requested;
    }
    const int cores = std::max(1, static_cast<int>(site.clients.front().cores));
    const int tasks = plan.tasks.processes * plan.tasks.threads;
    return std::clamp((tasks + cores - 1) / cores, 1, std::min(available, plan.tasks.processes));
}

files::TaskMap place_tasks(const plan::Plan& plan, const SystemModel& site, int requested_nodes) {
    files::TaskMap tasks;
    tasks.threads_per_process = plan.tasks.threads;
    tasks.active_tasks = plan.tasks.active;
    const auto nodes = static_cast<std::int64_t>(choose_node_count(plan, site, requested_nodes));
    for (int process = 0; process < plan.tasks.processes; ++process) {
        tasks.node_of_process.push_back(static_cast<int>(process * nodes / plan.tasks.processes));
    }
    return tasks;
}

/// The site with the plan's striping as the default layout of its file system. Throws SystemModelError.
SystemModel apply_striping(SystemModel site, const std::optional<plan::Striping>& striping) {
    if (!striping) {
        return site;
    }
    if (site.file_system.is_local) {
        throw SystemModelError("target.striping: " + site.file_system.id + " of system " + site.system +
                               " is local storage, which has no targets to choose: leave it out");
    }
    if (!striping->pool.empty() && striping->pool != site.mount) {
        throw SystemModelError("target.striping.pool: the files are simulated on " + site.mount +
                               "; choose the pool as the mount (--mount " + striping->pool + ")");
    }
    site.file_system.stripe_size = striping->size.value_or(site.file_system.stripe_size);
    site.file_system.stripe_count = striping->count.value_or(site.file_system.stripe_count);
    if (striping->start) {
        const auto first = std::find_if(
            site.targets.begin(), site.targets.end(),
            [&striping](const TargetDescription& target) { return target.index_in_file_system == *striping->start; });
        if (first == site.targets.end()) {
            throw SystemModelError("target.striping.start: " + site.file_system.id + " has no target of index " +
                                   std::to_string(*striping->start));
        }
        site.file_system.stripe_start = static_cast<std::uint32_t>(first - site.targets.begin());
    }
    return site;
}

std::uint64_t largest_memory(const SystemModel& site) {
    std::uint64_t largest = 0;
    for (const ClientDescription& client : site.clients) {
        largest = std::max(largest, client.memory_bytes);
    }
    return largest > 0 ? largest : std::uint64_t{64} << 30U;
}

/// Seconds since 1970 of a time in ISO 8601, with or without a fraction of a second; 0 for other text.
double parse_epoch(const std::string& started) {
    std::tm parts{};
    const char* fraction = strptime(started.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
    return fraction == nullptr ? 0 : static_cast<double>(timegm(&parts)) + std::strtod(fraction, nullptr);
}

void write_file(const std::filesystem::path& path, const std::string& text) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
}

}  // namespace

SimulatedVenue::SimulatedVenue(plan::Plan plan, SystemModel site, SimulationOptions options)
    : unused_members_(find_unused_members(plan)),
      plan_(remove_payload(std::move(plan), options.processes)),
      options_(std::move(options)),
      run_options_{options_.record, options_.run_id, options_.command},
      platform_(apply_striping(std::move(site), plan_.target.striping), {options_.seed}),
      context_{.plan = plan_,
               .options = run_options_,
               .team = platform_.team,
               .tasks = place_tasks(plan_, platform_.machine.system(), options_.nodes),
               .node_memory = largest_memory(platform_.machine.system())} {
    if (options_.started.empty()) {
        options_.started = records::format_utc_now();
    }
    context_.storage.directory =
        plan_.data.files.in_place()
            ? plan_.target.path
            : plan_.target.path + "/" +
                  (plan_.target.directory.empty() ? "sonde-" + options_.run_id : plan_.target.directory);
    context_.storage.file_system = platform_.machine.system().file_system.kind;
    context_.manifest.files = plan_.data.files;
    context_.manifest.tasks = context_.tasks;
    context_.manifest.has_data = plan_.has_data;
    context_.manifest.payload_period = payload::choose_payload_period(plan_.data.payload, 1);
    for (const Fault& fault : options_.faults) {
        platform_.machine.begin_fault(fault);
    }
    runs::check_tasks(plan_, context_.tasks);
    allocate_board();
}

SimulatedVenue::~SimulatedVenue() {
    if (board_memory_ != nullptr) {
        munmap(board_memory_, board_bytes_);
    }
}

void SimulatedVenue::allocate_board() {
    const bool has_duplex =
        std::any_of(plan_.phases.begin(), plan_.phases.end(), [](const auto& p) { return p.op == plan::Op::duplex; });
    const int streams = context_.tasks.all_tasks() * (has_duplex ? 2 : 1);
    board_bytes_ = phases::ProgressBoard::bytes_for(streams, plan_.observe.max_slices);
    void* memory =
        mmap(nullptr, board_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        throw std::bad_alloc();
    }
    board_memory_ = static_cast<std::byte*>(memory);
    context_.shared.board = new (board_memory_) phases::ProgressBoard;
    context_.shared.board->max_slices = plan_.observe.max_slices;
}

std::optional<int> SimulatedVenue::prepare() {
    record_file_ = files::RecordFile::open(options_.record);
    writer_ = std::make_unique<records::Writer>(record_file_->descriptor(), record_file_->path(), 0);
    writer_->set_clock([this] { return elapsed_ns(); });
    context_.root_state.record = writer_.get();
    return std::nullopt;
}

runs::RunDescription SimulatedVenue::describe_run() {
    const SystemModel& site = platform_.machine.system();
    ordered_json simulated{{"system", site.system}, {"mount", site.mount}, {"seed", options_.seed}};
    simulated["faults"] = ordered_json::array();
    for (const Fault& fault : options_.faults) {
        simulated["faults"].push_back(fault.to_text());
    }
    simulated["assumptions"] = site.assumptions;
    return {.start_date = options_.started, .clock_source = "virtual", .run_members = {{"simulated", simulated}}};
}

std::vector<ordered_json> SimulatedVenue::describe_nodes() {
    const SystemModel& site = platform_.machine.system();
    std::vector<ordered_json> nodes;
    for (int node = 0; node < context_.tasks.nodes(); ++node) {
        const ClientDescription& client = site.clients[static_cast<std::size_t>(node)];
        ordered_json attributes{{"node", node}, {"host", client.id}, {"cpus", client.cores}, {"page_bytes", 4096}};
        if (client.memory_bytes > 0) {
            attributes["memory_bytes"] = client.memory_bytes;
        }
        attributes["file_system"] = {{"type", site.file_system.kind},
                                     {"mount_point", plan_.target.path},
                                     {"source", site.system + ":" + site.file_system.id},
                                     {"network", !site.file_system.is_local},
                                     {"memory_backed", false}};
        attributes["clock_offset_ns"] = 0;
        attributes["clock_error_ns"] = 0;
        nodes.push_back(std::move(attributes));
    }
    return nodes;
}

/// Writes the assumptions of the model, and the numbers of the system and members of the plan that it does not use.
void SimulatedVenue::begin_phases() {
    for (const std::string& assumption : platform_.machine.system().assumptions) {
        writer_->write_line("finding", {{"id", "model_assumes"}, {"severity", "info"}, {"text", assumption}});
    }
    std::vector<std::string> ignored = platform_.machine.system().unused_members;
    ignored.insert(ignored.end(), unused_members_.begin(), unused_members_.end());
    for (const std::string& sentence : ignored) {
        writer_->write_line("finding", {{"id", "model_ignores"}, {"severity", "info"}, {"text", sentence}});
    }
}

std::unique_ptr<phases::PhaseSteps> SimulatedVenue::begin_phase(std::size_t index) {
    return std::make_unique<SimulatedPhase>(context_, index, platform_);
}

/// Writes counters and logs under the paths of real servers, so that programs that read those can read these.
void SimulatedVenue::close() {
    if (options_.traces.empty()) {
        return;
    }
    const std::filesystem::path directory = options_.traces;
    const MonitoringData& monitoring = platform_.machine.get_monitoring_data();
    const double epoch = parse_epoch(options_.started);
    const double now = epoch + to_seconds(elapsed_ns());
    for (const MonitoringFile& file :
         list_monitoring_files(monitoring, static_cast<std::size_t>(context_.tasks.nodes()))) {
        write_file(directory / file.path, file.text(monitoring, epoch, now));
    }
}

}  // namespace sonde::simulate
