// SPDX-License-Identifier: Apache-2.0
#include "ranks/mpi_team.hpp"

#include "ranks/clock_alignment.hpp"
#include "ranks/mpi_loader.hpp"
#include "ranks/node_map.hpp"
#include "ranks/node_team.hpp"
#include "ranks/reduction_tree.hpp"
#include "ranks/rendezvous.hpp"
#include "ranks/wire.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <vector>

namespace sonde::ranks {
namespace {

using std::chrono::steady_clock;

std::int64_t monotonic_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(steady_clock::now().time_since_epoch()).count();
}

// How long a node may be silent before the others give it up: SONDE_NODE_PATIENCE in seconds, of the root.
std::int64_t patience_with_nodes() {
    constexpr double usual_s = 60;
    constexpr double least_s = 1;
    const char* wish = std::getenv("SONDE_NODE_PATIENCE");
    const double seconds = wish != nullptr ? std::strtod(wish, nullptr) : usual_s;
    return static_cast<std::int64_t>(1e9 * (seconds >= least_s && seconds < 1e6 ? seconds : usual_s));
}

// Everything between nodes begins with a vote: the largest value of all leaders, and whether a node has lost a process.
// A node that has cast its farewell vote takes part in nothing any more, and the others learn of it in the very next
// vote, whatever that was about. So no order of failures makes the nodes wait for each other.
class MpiTeam final : public NodeTeam {
 public:
    MpiTeam(const SondeMpiModule* module, NodeMap&& map, Joined&& joined, const std::string& description,
            std::unique_ptr<Wire> wire)
        : NodeTeam(std::move(joined.arena), joined.head, map.place, description),
          module_(module),
          leaders_(std::move(map.leaders)),
          wire_(std::move(wire)) {
        module_->set_watch([](void* self) { return static_cast<MpiTeam*>(self)->worth_waiting() ? 1 : 0; }, this);
        if (speaks()) {
            check(module_->set_leaders(leaders_.data(), static_cast<int>(leaders_.size())));
            connect_wires();
        }
        align_clocks();
    }
    ~MpiTeam() override { module_->set_watch(nullptr, nullptr); }

    std::string broadcast(std::string text) override;
    std::uint64_t maximum(std::uint64_t mine) override;
    std::string reduce(std::string mine, const std::function<std::string(std::string, std::string)>& join) override;
    void align_clocks() override;
    bool meet(int stream) override;
    const void* mpi() const override { return module_; }
    void take_part(int processes) override {
        if (processes != partakers_) {
            check(module_->set_members(processes));
            partakers_ = processes;
        }
    }
    Remote remote_progress() const override {
        return {head().remote_bytes.load(), head().remote_operations.load(), head().remote_nodes.load()};
    }
    void count_progress(const std::byte* first, std::size_t stride, const std::atomic<int>* used) override;
    void finish() override;

 private:
    bool many() const { return place_.nodes > 1; }
    bool speaks() const { return many() && place_.leader(); }
    bool worth_waiting();
    void connect_wires();
    void check(int result) const;
    bool vote(std::uint64_t& value);
    bool give(int node, const void* data, std::size_t bytes);
    bool take(int node, void* data, std::size_t bytes);
    bool give_text(int node, const std::string& text);
    bool take_text(int node, std::string& text);
    bool answer_clock(int node, const ClockOffset& mine);
    bool ask_clock(int node, ClockOffset& mine);
    bool exchange_clocks(ClockOffset& mine);

    const SondeMpiModule* module_;
    std::vector<int> leaders_;
    std::unique_ptr<Wire> wire_;             // leaders of runs of several nodes, where one could be made
    int partakers_ = place_.processes;       // as take_part() said last
    bool departed_ = false;                  // the farewell vote is cast
    std::atomic<std::int64_t> deadline_{0};  // of the farewell, ns; 0 = none
};

// Asked while MPI waits. A process lost on this node is no reason to leave a vote that the others will answer; news
// that they are gone is.
bool MpiTeam::worth_waiting() {
    const std::int64_t deadline = deadline_.load(std::memory_order_relaxed);
    return head().broken.load() != NodeHead::everywhere && (deadline == 0 || monotonic_ns() < deadline);
}

void MpiTeam::check(int result) const {
    if (result != 0) {
        throw TeamError(std::string("MPI failed on ") + place_.host + " (process " + std::to_string(place_.process) +
                        "): " + module_->last_error());
    }
}

// The root says where its wire can be reached; everybody's wire reports there.
void MpiTeam::connect_wires() {
    struct {
        std::uint64_t token;
        std::int64_t patience_ns;
        Addresses hub;
    } notice{Identity::mine().token, patience_with_nodes(), wire_ ? wire_->addresses() : Addresses{}};
    check(module_->leaders_broadcast(&notice, sizeof notice));
    if (wire_) {
        Wire::Task task;
        task.token = notice.token;
        task.node = place_.node;
        task.nodes = place_.nodes;
        task.process = place_.process;
        task.head_bytes = NodeHead::bytes(place_.locals);
        task.patience_ns = notice.patience_ns;
        task.hub = notice.hub;
        wire_->assign(task, arena().descriptor());
    }
}

void MpiTeam::count_progress(const std::byte* first, std::size_t stride, const std::atomic<int>* used) {
    if (speaks()) {
        head().counted.first.store(arena().place_of(first));
        head().counted.stride.store(stride);
        head().counted.used.store(arena().place_of(used));
        head().counted.bytes.store(arena().taken(), std::memory_order_release);
    }
}

// True when all nodes are whole; `value` becomes the largest of all leaders.
bool MpiTeam::vote(std::uint64_t& value) {
    if (departed_ || head().broken.load() == NodeHead::everywhere) {
        return false;
    }
    std::array<std::uint64_t, 2> words{0, value};
    if (broken()) {
        // The farewell: the others hear it when they vote next. A phase may still be running there, so not for ever.
        constexpr std::int64_t patience_ns = 10'000'000'000;
        departed_ = true;
        deadline_.store(monotonic_ns() + patience_ns);
        words[0] = static_cast<std::uint64_t>(control().lost_process.load()) + 2;
    }
    if (module_->leaders_maximum(words.data(), words.size()) != 0) {
        head().lose_process(-1, NodeHead::everywhere);
        return false;
    }
    value = words[1];
    if (words[0] != 0) {
        head().lose_process(static_cast<int>(words[0]) - 2, NodeHead::everywhere);
    }
    return words[0] == 0;
}

bool MpiTeam::meet(int stream) {
    if (!many()) {
        return meet_node(stream);
    }
    if (broken() && !(place_.leader() && stream == 0)) {
        return false;
    }
    const std::uint32_t waiters = streams();
    if (!place_.leader() || stream != 0) {
        return head().streams.follow(waiters, spin(waiters), watch()) && !broken();
    }
    const bool complete = !broken() && head().streams.gather(waiters, spin(waiters), watch());
    std::uint64_t nothing = 0;
    const bool whole = vote(nothing);
    if (complete) {
        head().streams.open();
    }
    return whole;
}

std::uint64_t MpiTeam::maximum(std::uint64_t mine) {
    const std::uint64_t here = node_maximum(mine);
    if (!many()) {
        return here;
    }
    const auto waiters = static_cast<std::uint32_t>(place_.locals);
    if (!place_.leader()) {
        const bool told = !broken() && head().mains.follow(waiters, spin(waiters), watch());
        return told ? head().verdict.load() : here;
    }
    const bool complete = !broken() && head().mains.gather(waiters, spin(waiters), watch());
    std::uint64_t largest = here;
    if (!vote(largest)) {
        largest = here;
    }
    if (complete) {
        head().verdict.store(largest);
        head().mains.open();
    }
    return largest;
}

std::string MpiTeam::broadcast(std::string text) {
    if (speaks()) {
        std::uint64_t length = place_.root() ? text.size() : 0;
        if (vote(length)) {
            text.resize(length);
            if (module_->leaders_broadcast(text.data(), length) != 0) {
                head().lose_process(-1, NodeHead::everywhere);
            }
        }
        if (broken() && !place_.root()) {
            throw TeamError("another process ended before the root had told " + place_.host + " what to do");
        }
    }
    return NodeTeam::broadcast(std::move(text));
}

bool MpiTeam::give(int node, const void* data, std::size_t bytes) {
    if (module_->send(node, data, bytes) == 0) {
        return true;
    }
    head().lose_process(-1, NodeHead::everywhere);
    return false;
}

bool MpiTeam::take(int node, void* data, std::size_t bytes) {
    if (module_->receive(node, data, bytes) == 0) {
        return true;
    }
    head().lose_process(-1, NodeHead::everywhere);
    return false;
}

bool MpiTeam::give_text(int node, const std::string& text) {
    const std::uint64_t length = text.size();
    return give(node, &length, sizeof length) && give(node, text.data(), text.size());
}

bool MpiTeam::take_text(int node, std::string& text) {
    std::uint64_t length = 0;
    if (!take(node, &length, sizeof length)) {
        return false;
    }
    text.resize(length);
    return take(node, text.data(), length);
}

std::string MpiTeam::reduce(std::string mine, const std::function<std::string(std::string, std::string)>& join) {
    std::uint64_t nothing = 0;
    if (!speaks() || !vote(nothing)) {
        return place_.root() ? mine : std::string();
    }
    return reduce_in_tree(
        place_.node, place_.nodes, std::move(mine),
        [this](int node, const std::string& text) { give_text(node, text); },
        [this](int node, std::string& text) { return take_text(node, text); }, join);
}

constexpr int clock_rounds = 24;

// The far side of a measurement: answers each message with the times of its arrival and of the answer.
bool MpiTeam::answer_clock(int node, const ClockOffset& mine) {
    for (int round = 0; round < clock_rounds; ++round) {
        char knock = 0;
        if (!take(node, &knock, sizeof knock)) {
            return false;
        }
        std::array<std::int64_t, 2> times{monotonic_ns(), 0};
        times[1] = monotonic_ns();
        if (!give(node, times.data(), sizeof times)) {
            return false;
        }
    }
    return give(node, &mine, sizeof mine);
}

bool MpiTeam::ask_clock(int node, ClockOffset& mine) {
    std::vector<Exchange> exchanges(clock_rounds);
    for (Exchange& exchange : exchanges) {
        const char knock = 'k';
        std::array<std::int64_t, 2> times{};
        exchange.sent = monotonic_ns();
        if (!give(node, &knock, sizeof knock) || !take(node, times.data(), sizeof times)) {
            return false;
        }
        exchange.returned = monotonic_ns();
        exchange.received = times[0];
        exchange.answered = times[1];
    }
    ClockOffset theirs;
    if (!take(node, &theirs, sizeof theirs)) {
        return false;
    }
    // The first exchange may include the setting up of a connection; it is valid all the same, only wide.
    mine = chained(offset_from(exchanges), theirs);
    return true;
}

// Each node asks the one that it reports to in reduce(): log2(nodes) steps, and as many errors added at most.
bool MpiTeam::exchange_clocks(ClockOffset& mine) {
    const int node = place_.node;
    const int lowest = node == 0 ? 1 << 30 : node & -node;
    if (node != 0 && !ask_clock(node - lowest, mine)) {
        return false;
    }
    int step = 1;
    while (step < lowest && node + step < place_.nodes) {
        step *= 2;
    }
    // The largest subtree first: it has the longest way to go.
    for (step /= 2; step >= 1; step /= 2) {
        if (node + step < place_.nodes && !answer_clock(node + step, mine)) {
            return false;
        }
    }
    return true;
}

void MpiTeam::align_clocks() {
    if (!many()) {
        return;
    }
    std::uint64_t nothing = 0;
    ClockOffset mine;
    if (place_.leader() && vote(nothing) && exchange_clocks(mine)) {
        head().clock_offset.store(mine.offset_ns);
        head().clock_error.store(mine.error_ns);
    }
    meet_mains();
}

void MpiTeam::finish() {
    // The vote makes sure that nobody takes MPI down while another still talks.
    if (maximum(0) == 0 && !broken()) {
        NodeTeam::finish();
        if (!broken()) {
            if (wire_) {
                wire_->dismiss();
            }
            module_->stop();
        }
    }
}

Prefer preference(const Launched& launched) {
    return launched.by == "openmpi" || launched.by == "pmix" || launched.pmix ? Prefer::site : Prefer::standard;
}

void compare_counts(const Launched& launched, int size, const std::string& library) {
    if (launched.processes > 0 && launched.by != "none" && launched.processes != size) {
        throw TeamError("the launcher (" + launched.by + ") started " + std::to_string(launched.processes) +
                        " processes, but " + library + " sees " + std::to_string(size) +
                        ": start with the launcher of that MPI, or name the module of another MPI in SONDE_MPI_MODULE");
    }
}

// A wire is of use to the leader of one node among several. Who that is becomes certain only when MPI has started, and
// then it is too late to fork: the launcher's word decides.
std::unique_ptr<Wire> early_wire(const Launched& launched) {
    const bool likely = launched.local == 0 && launched.processes > 1 && launched.locals != launched.processes;
    return likely ? Wire::start() : nullptr;
}

}  // namespace

std::unique_ptr<Team> mpi_team(const FormRequest& request, const Launched& launched) {
    auto wire = early_wire(launched);
    const SondeMpiModule* module = load_module(usual_search(request.mpi_module, preference(launched)));
    int rank = 0;
    int size = 1;
    std::array<char, 256> library{};
    const auto check = [&](int result) {
        if (result != 0) {
            throw TeamError(std::string("MPI did not start: ") + module->last_error());
        }
    };
    check(module->start(&rank, &size, library.data(), library.size()));
    compare_counts(launched, size, library.data());
    const Identity mine = Identity::mine();
    std::vector<Identity> all(static_cast<std::size_t>(size));
    check(module->allgather(&mine, sizeof mine, all.data()));
    if (const std::string mixed = mixed_engines(all); !mixed.empty()) {
        module->stop();
        throw CommonError(mixed);
    }
    NodeMap map = map_nodes(all, rank);
    if (wire && (map.place.nodes == 1 || !map.place.leader())) {
        wire->dismiss();
        wire.reset();
    }
    Meeting meeting;
    meeting.name = "mpi-" + std::to_string(map.token);
    meeting.local = map.place.local;
    meeting.locals = map.place.locals;
    Joined joined = rendezvous(meeting);
    const std::string description = std::string("mpi (") + library.data() + ", " + module->flavour + ")";
    return std::make_unique<MpiTeam>(module, std::move(map), std::move(joined), description, std::move(wire));
}

}  // namespace sonde::ranks
