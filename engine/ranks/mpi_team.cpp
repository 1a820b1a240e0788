// SPDX-License-Identifier: Apache-2.0
#include "ranks/mpi_team.hpp"
#include "ranks/team_error.hpp"

#include "ranks/clock_exchange.hpp"
#include "ranks/mpi_loader.hpp"
#include "ranks/node_map.hpp"
#include "ranks/node_team.hpp"
#include "ranks/reduction_tree.hpp"
#include "ranks/rendezvous.hpp"
#include "ranks/ssh_module.hpp"
#include "ranks/wire.hpp"

#include <sys/random.h>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace sonde::ranks {
namespace {

// Time without messages after which a node counts as lost: SONDE_NODE_PATIENCE of the root, in seconds.
std::int64_t read_node_timeout_ns() {
    constexpr double default_s = 60;
    constexpr double min_s = 1;
    const char* text = std::getenv("SONDE_NODE_PATIENCE");
    const double seconds = text != nullptr ? std::strtod(text, nullptr) : default_s;
    return static_cast<std::int64_t>(1e9 * (seconds >= min_s && seconds < 1e6 ? seconds : default_s));
}

// Every exchange between nodes begins with a vote: the largest value of all leaders, and whether a node has lost a
// process. A node that has cast its farewell vote takes no further part, and the other nodes learn this in their next
// vote. So no order of failures can make nodes wait for each other.
class MpiTeam final : public NodeTeam {
 public:
    MpiTeam(const SondeMpiModule* module, NodeMap&& map, RendezvousResult&& joined, const std::string& description,
            std::unique_ptr<WireHandle> wire)
        : NodeTeam(std::move(joined.arena), joined.head, map.location, description),
          module_(module),
          leaders_(std::move(map.leaders)),
          node_names_(std::move(map.node_names)),
          wire_(std::move(wire)) {
        module_->set_wait_callback(
            [](void* self) { return static_cast<MpiTeam*>(self)->should_keep_waiting() ? 1 : 0; }, this);
        if (uses_mpi()) {
            check(module_->set_leaders(leaders_.data(), static_cast<int>(leaders_.size())));
            connect_wires();
        }
        align_clocks();
    }
    ~MpiTeam() override { module_->set_wait_callback(nullptr, nullptr); }

    std::string broadcast(std::string text) override;
    std::uint64_t reduce_maximum(std::uint64_t own_value) override;
    std::string reduce_text(std::string own_text,
                            const std::function<std::string(std::string, std::string)>& join) override;
    void align_clocks() override;
    bool wait_for_all(int stream) override;
    const void* mpi_module() const override { return module_->file_open != nullptr ? module_ : nullptr; }
    void set_active_processes(int processes) override {
        if (processes != active_processes_) {
            check(module_->set_members(processes));
            active_processes_ = processes;
        }
    }
    RemoteProgress remote_progress() const override {
        return {head().remote_bytes.load(), head().remote_operations.load(), head().remote_nodes.load()};
    }
    RejectedMessages rejected_messages() const override {
        return {head().foreign_datagrams.load(), head().repeated_datagrams.load()};
    }
    void register_progress(const std::byte* first, std::size_t stride, const std::atomic<int>* used) override;
    void finish() override;

 private:
    bool has_many_nodes() const { return location_.nodes > 1; }
    bool uses_mpi() const { return has_many_nodes() && location_.is_leader(); }
    bool should_keep_waiting();
    void connect_wires();
    void check(int result) const;
    bool reduce_maximum_of_leaders(std::uint64_t& value);
    bool send(int node, const void* data, std::size_t bytes);
    bool receive(int node, void* data, std::size_t bytes);
    bool send_text(int node, const std::string& text);
    bool receive_text(int node, std::string& text);
    bool exchange_clocks(ClockOffset& own_offset);

    const SondeMpiModule* module_;
    std::vector<int> leaders_;
    std::vector<std::string> node_names_;
    std::unique_ptr<WireHandle> wire_;  // of leaders in runs on several nodes; null when it could not be created
    int active_processes_ = location_.processes;         // last argument of set_active_processes()
    bool farewell_sent_ = false;                         // the farewell vote was cast
    std::atomic<std::int64_t> farewell_deadline_ns_{0};  // of the farewell, ns; 0 = none
};

// Called while MPI waits. A process lost on this node does not end the wait, because the other nodes will still answer
// the vote; the loss of other nodes does.
bool MpiTeam::should_keep_waiting() {
    const std::int64_t deadline = farewell_deadline_ns_.load(std::memory_order_relaxed);
    return head().broken_extent.load() != NodeSharedState::all_nodes && (deadline == 0 || monotonic_ns() < deadline);
}

void MpiTeam::check(int result) const {
    if (result != 0) {
        throw TeamError(std::string("messages between processes failed on ") + location_.host + " (process " +
                        std::to_string(location_.process) + "): " + module_->last_error_message());
    }
}

// The root broadcasts the address of its wire process and the key of the run; all wire processes send their reports
// there. The key never leaves MPI: datagrams carry hashes only.
void MpiTeam::connect_wires() {
    struct {
        HashKey key{};
        std::int64_t patience_ns = 0;
        NodeAddress hub;
    } notice;
    notice.patience_ns = read_node_timeout_ns();
    const bool is_hub = location_.is_root();
    if (is_hub && wire_ && getrandom(notice.key.data(), sizeof notice.key, 0) == sizeof notice.key) {
        notice.hub = wire_->open_socket(true, choose_hub_address(node_names_));
    }
    check(module_->leaders_broadcast(&notice, sizeof notice));
    if (wire_ && notice.hub.port != 0) {
        if (!is_hub) {
            wire_->open_socket(false, notice.hub);
        }
        WireProcessSettings assignment;
        assignment.key = notice.key;
        assignment.node = location_.node;
        assignment.nodes = location_.nodes;
        assignment.process = location_.process;
        assignment.head_bytes = NodeSharedState::required_bytes(location_.local_count);
        assignment.patience_ns = notice.patience_ns;
        wire_->assign(assignment, arena().descriptor());
    }
    explicit_bzero(&notice.key, sizeof notice.key);
}

void MpiTeam::register_progress(const std::byte* first, std::size_t stride, const std::atomic<int>* used) {
    if (uses_mpi()) {
        head().progress_counters.first_offset.store(arena().file_offset(first));
        head().progress_counters.offset_stride.store(stride);
        head().progress_counters.count_offset.store(arena().file_offset(used));
        head().progress_counters.bytes.store(arena().allocated_bytes(), std::memory_order_release);
    }
}

// Returns true when no node has lost a process; `value` becomes the largest value of all leaders.
bool MpiTeam::reduce_maximum_of_leaders(std::uint64_t& value) {
    if (farewell_sent_ || head().broken_extent.load() == NodeSharedState::all_nodes) {
        return false;
    }
    std::array<std::uint64_t, 2> vote_values{0, value};
    if (is_broken()) {
        // The farewell vote: the others receive it with their next vote. A phase may still run there, so the wait is
        // limited.
        constexpr std::int64_t patience_ns = 10'000'000'000;
        farewell_sent_ = true;
        farewell_deadline_ns_.store(monotonic_ns() + patience_ns);
        vote_values[0] = static_cast<std::uint64_t>(control().lost_process.load()) + 2;
    }
    if (module_->leaders_maximum(vote_values.data(), vote_values.size()) != 0) {
        head().mark_process_lost(-1, NodeSharedState::all_nodes);
        return false;
    }
    value = vote_values[1];
    if (vote_values[0] != 0) {
        head().mark_process_lost(static_cast<int>(vote_values[0]) - 2, NodeSharedState::all_nodes);
    }
    return vote_values[0] == 0;
}

bool MpiTeam::wait_for_all(int stream) {
    if (!has_many_nodes()) {
        return wait_for_node(stream);
    }
    if (is_broken() && !(location_.is_leader() && stream == 0)) {
        return false;
    }
    const std::uint32_t waiters = count_streams();
    if (!location_.is_leader() || stream != 0) {
        return head().stream_barrier.wait_for_release(waiters, should_spin(waiters), liveness_check()) && !is_broken();
    }
    const bool all_arrived =
        !is_broken() && head().stream_barrier.wait_for_followers(waiters, should_spin(waiters), liveness_check());
    std::uint64_t nothing = 0;
    const bool is_complete = reduce_maximum_of_leaders(nothing);
    if (all_arrived) {
        head().stream_barrier.release();
    }
    return is_complete;
}

std::uint64_t MpiTeam::reduce_maximum(std::uint64_t own_value) {
    const std::uint64_t node_value = node_maximum(own_value);
    if (!has_many_nodes()) {
        return node_value;
    }
    const auto waiters = static_cast<std::uint32_t>(location_.local_count);
    if (!location_.is_leader()) {
        const bool is_released =
            !is_broken() && head().main_barrier.wait_for_release(waiters, should_spin(waiters), liveness_check());
        return is_released ? head().global_maximum.load() : node_value;
    }
    const bool all_arrived =
        !is_broken() && head().main_barrier.wait_for_followers(waiters, should_spin(waiters), liveness_check());
    std::uint64_t largest = node_value;
    if (!reduce_maximum_of_leaders(largest)) {
        largest = node_value;
    }
    if (all_arrived) {
        head().global_maximum.store(largest);
        head().main_barrier.release();
    }
    return largest;
}

std::string MpiTeam::broadcast(std::string text) {
    if (uses_mpi()) {
        std::uint64_t length = location_.is_root() ? text.size() : 0;
        if (reduce_maximum_of_leaders(length)) {
            text.resize(length);
            if (module_->leaders_broadcast(text.data(), length) != 0) {
                head().mark_process_lost(-1, NodeSharedState::all_nodes);
            }
        }
        if (is_broken() && !location_.is_root()) {
            throw TeamError("another process ended before the root had told " + location_.host + " what to do");
        }
    }
    return NodeTeam::broadcast(std::move(text));
}

bool MpiTeam::send(int node, const void* data, std::size_t bytes) {
    if (module_->send(node, data, bytes) == 0) {
        return true;
    }
    head().mark_process_lost(-1, NodeSharedState::all_nodes);
    return false;
}

bool MpiTeam::receive(int node, void* data, std::size_t bytes) {
    if (module_->receive(node, data, bytes) == 0) {
        return true;
    }
    head().mark_process_lost(-1, NodeSharedState::all_nodes);
    return false;
}

bool MpiTeam::send_text(int node, const std::string& text) {
    const std::uint64_t length = text.size();
    return send(node, &length, sizeof length) && send(node, text.data(), text.size());
}

bool MpiTeam::receive_text(int node, std::string& text) {
    std::uint64_t length = 0;
    if (!receive(node, &length, sizeof length)) {
        return false;
    }
    text.resize(length);
    return receive(node, text.data(), length);
}

std::string MpiTeam::reduce_text(std::string own_text,
                                 const std::function<std::string(std::string, std::string)>& join) {
    std::uint64_t nothing = 0;
    if (!uses_mpi() || !reduce_maximum_of_leaders(nothing)) {
        return location_.is_root() ? own_text : std::string();
    }
    return reduce_in_tree(
        location_.node, location_.nodes, std::move(own_text),
        [this](int node, const std::string& text) { send_text(node, text); },
        [this](int node, std::string& text) { return receive_text(node, text); }, join);
}

bool MpiTeam::exchange_clocks(ClockOffset& own_offset) {
    const ClockExchangeChannel channel{
        [this](int node, const void* data, std::size_t bytes) { return send(node, data, bytes); },
        [this](int node, void* data, std::size_t bytes) { return receive(node, data, bytes); }};
    return measure_offset_to_root(location_.node, location_.nodes, channel, own_offset);
}

void MpiTeam::align_clocks() {
    if (!has_many_nodes()) {
        return;
    }
    std::uint64_t nothing = 0;
    ClockOffset own_offset;
    if (location_.is_leader() && reduce_maximum_of_leaders(nothing) && exchange_clocks(own_offset)) {
        head().clock_offset_ns.store(own_offset.offset_ns);
        head().clock_error_ns.store(own_offset.error_ns);
    }
    wait_for_main_threads();
}

void MpiTeam::finish() {
    // The vote ensures that no process finalizes MPI while another one still communicates.
    const std::uint64_t forbidden = reduce_maximum(may_stop() ? 0 : 1);
    if (!is_broken()) {
        NodeTeam::finish();
        if (!is_broken()) {
            if (wire_) {
                wire_->finish();
            }
            if (forbidden == 0) {
                module_->stop();
            }
        }
    }
}

ModulePreference choose_module(const TeamRequest& request, const LaunchEnvironment& launch) {
    const bool is_site = launch.launcher == "openmpi" || launch.launcher == "pmix" || launch.pmix ||
                         (launch.launcher == "none" && request.prefer_site);
    return is_site ? ModulePreference::site : ModulePreference::standard;
}

void check_process_count(const LaunchEnvironment& launch, int size, const std::string& library) {
    if (launch.processes > 0 && launch.launcher != "none" && launch.processes != size) {
        throw TeamError("the launcher (" + launch.launcher + ") started " + std::to_string(launch.processes) +
                        " processes, but " + library + " sees " + std::to_string(size) +
                        ": start with the launcher of that MPI, or name the module of another MPI in SONDE_MPI_MODULE");
    }
}

// Only leaders in runs on several nodes need a wire process. Leaders are known only after MPI has started, when it is
// too late to fork, so the environment of the launcher decides.
std::unique_ptr<WireHandle> start_wire_if_leader(const LaunchEnvironment& launch) {
    const bool likely = launch.local_index == 0 && launch.processes > 1 && launch.local_count != launch.processes;
    return likely ? WireHandle::start() : nullptr;
}

}  // namespace

std::unique_ptr<Team> form_mpi_team(const TeamRequest& request, const LaunchEnvironment& launch) {
    auto wire = start_wire_if_leader(launch);
    const bool is_over_ssh = launch.launcher == "ssh";
    if (is_over_ssh && request.need_mpi) {
        throw CommonError(
            "the backend needs MPI, and processes started over ssh have none: use --launcher mpiexec or srun");
    }
    const SondeMpiModule* module =
        is_over_ssh ? ssh_module() : load_module(default_search(request.mpi_module, choose_module(request, launch)));
    int rank = 0;
    int size = 1;
    std::array<char, 256> library{};
    const auto check = [&](int result) {
        if (result != 0) {
            throw TeamError(std::string("MPI did not start: ") + module->last_error_message());
        }
    };
    check(module->start(&rank, &size, library.data(), library.size()));
    check_process_count(launch, size, library.data());
    const ProcessIdentity identity = ProcessIdentity::of_this_process(launch.node_name);
    std::vector<ProcessIdentity> all(static_cast<std::size_t>(size));
    check(module->allgather(&identity, sizeof identity, all.data()));
    if (const std::string mismatch = explain_version_mismatch(all); !mismatch.empty()) {
        module->stop();
        throw CommonError(mismatch);
    }
    NodeMap map = map_nodes(all, rank);
    if (wire && (map.location.nodes == 1 || !map.location.is_leader())) {
        wire->finish();
        wire.reset();
    }
    RendezvousRequest meeting;
    meeting.name = "mpi-" + std::to_string(map.token);
    meeting.local_index = map.location.local_index;
    meeting.local_count = map.location.local_count;
    RendezvousResult joined = rendezvous(meeting);
    const std::string description =
        is_over_ssh ? "ssh" : std::string("mpi (") + library.data() + ", " + module->flavor + ")";
    return std::make_unique<MpiTeam>(module, std::move(map), std::move(joined), description, std::move(wire));
}

}  // namespace sonde::ranks
