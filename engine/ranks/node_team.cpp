// SPDX-License-Identifier: Apache-2.0
#include "ranks/node_team.hpp"
#include "ranks/team_error.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>

namespace sonde::ranks {
namespace {

constexpr std::size_t cache_line_bytes = 64;

std::size_t compute_head_bytes() {
    return (sizeof(NodeSharedState) + cache_line_bytes - 1) / cache_line_bytes * cache_line_bytes;
}

void make_alive_lock(pthread_mutex_t& alive_lock) {
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&alive_lock, &kind);
    pthread_mutexattr_destroy(&kind);
}

// EBUSY means that the owner holds the mutex. Any other result means that the owner is gone. A mutex that this call
// acquired is unlocked without repair, so that later callers get ENOTRECOVERABLE.
bool is_alive(Peer& peer) {
    const int answer = pthread_mutex_trylock(&peer.alive_lock);
    if (answer == EBUSY) {
        return true;
    }
    if (answer == 0 || answer == EOWNERDEAD) {
        pthread_mutex_unlock(&peer.alive_lock);
    }
    return false;
}

// While processes join, one that does not arrive in time counts as dead, because it holds no mutex yet.
class JoinTimeout final : public LivenessCheck {
 public:
    explicit JoinTimeout(NodeSharedState& head) : head_(head) {}
    bool is_intact(bool thorough) override {
        if (!head_.is_intact(thorough)) {
            return false;
        }
        if (!thorough || std::chrono::steady_clock::now() < end_) {
            return true;
        }
        const auto peers = head_.peers();
        const auto absent = std::find_if(peers.begin(), peers.end(),
                                         [](const Peer& peer) { return peer.state.load() == Peer::absent; });
        if (absent != peers.end()) {
            head_.mark_lost(static_cast<int>(absent - peers.begin()));
        }
        return absent == peers.end();
    }

 private:
    NodeSharedState& head_;
    std::chrono::steady_clock::time_point end_ = std::chrono::steady_clock::now() + std::chrono::seconds(30);
};

}  // namespace

std::size_t NodeSharedState::required_bytes(int local_count) {
    return compute_head_bytes() + sizeof(Peer) * static_cast<std::size_t>(local_count);
}

std::span<Peer> NodeSharedState::peers() {
    auto* first = reinterpret_cast<std::byte*>(this) + compute_head_bytes();
    return {std::launder(reinterpret_cast<Peer*>(first)), static_cast<std::size_t>(local_count)};
}

NodeSharedState* NodeSharedState::construct_in(std::byte* memory, int local_count) {
    auto* head = new (memory) NodeSharedState;
    head->local_count = local_count;
    auto* first = memory + compute_head_bytes();
    for (int local_index = 0; local_index < local_count; ++local_index) {
        auto* peer = new (first + sizeof(Peer) * static_cast<std::size_t>(local_index)) Peer;
        make_alive_lock(peer->alive_lock);
    }
    return head;
}

NodeSharedState* NodeSharedState::attach(std::byte* memory) {
    return std::launder(reinterpret_cast<NodeSharedState*>(memory));
}

void NodeSharedState::mark_lost(int local_index) {
    mark_process_lost(peers()[static_cast<std::size_t>(local_index)].process.load(), this_node_only);
}

void NodeSharedState::mark_process_lost(int process, std::uint32_t extent) {
    int none = -1;
    control.lost_process.compare_exchange_strong(none, process);
    std::uint32_t extent_so_far = broken_extent.load();
    while (extent_so_far < extent && !broken_extent.compare_exchange_weak(extent_so_far, extent)) {
    }
    // The first reason is kept: an interrupted run stays an interrupted run.
    std::uint32_t running = 0;
    control.stop.compare_exchange_strong(running, NodeControl::quit_peer_lost);
    stream_barrier.wake_all();
    main_barrier.wake_all();
}

bool NodeSharedState::is_intact(bool thorough) {
    if (broken_extent.load(std::memory_order_acquire) != 0) {
        return false;
    }
    if (!thorough) {
        return true;
    }
    const auto all_peers = peers();
    for (std::size_t local_index = 0; local_index < all_peers.size(); ++local_index) {
        if (all_peers[local_index].state.load(std::memory_order_acquire) == Peer::present &&
            !is_alive(all_peers[local_index]) &&
            all_peers[local_index].state.load(std::memory_order_acquire) == Peer::present) {
            mark_lost(static_cast<int>(local_index));
            return false;
        }
    }
    return true;
}

NodeTeam::NodeTeam(Arena arena, NodeSharedState* head, ProcessLocation location, std::string description)
    : location_(std::move(location)), description_(std::move(description)), arena_(std::move(arena)), head_(head) {
    Peer& own_peer = find_own_peer();
    CPU_ZERO(&own_peer.cores);
    sched_getaffinity(0, sizeof own_peer.cores, &own_peer.cores);
    pthread_mutex_lock(&own_peer.alive_lock);
    own_peer.process.store(location_.process);
    own_peer.state.store(Peer::present, std::memory_order_release);
    JoinTimeout patience(*head_);
    const auto waiters = static_cast<std::uint32_t>(location_.local_count);
    if (is_broken() || !head_->main_barrier.wait_for_all(waiters, false, patience)) {
        own_peer.state.store(Peer::left, std::memory_order_release);
        pthread_mutex_unlock(&own_peer.alive_lock);
        throw TeamError("a process of " + location_.host + " ended or hung while the " + std::to_string(waiters) +
                        " processes of this node were still meeting");
    }
    // Launchers bind ranks to different cores, so the union of all cores counts.
    cpu_set_t shared_cores;
    CPU_ZERO(&shared_cores);
    for (Peer& peer : head_->peers()) {
        CPU_OR(&shared_cores, &shared_cores, &peer.cores);
    }
    core_count_ = static_cast<std::uint32_t>(std::max(1, CPU_COUNT(&shared_cores)));
}

NodeTeam::~NodeTeam() {
    Peer& own_peer = find_own_peer();
    if (!finished_) {
        head_->mark_lost(location_.local_index);
    }
    own_peer.state.store(Peer::left, std::memory_order_release);
    // The kernel must not find the mutex in this thread's robust list after the memory is unmapped.
    pthread_mutex_unlock(&own_peer.alive_lock);
}

void NodeTeam::finish() {
    if (!finished_ && wait_for_main_threads()) {
        finished_ = true;
        find_own_peer().state.store(Peer::left, std::memory_order_release);
    }
}

void NodeTeam::set_streams_per_process(int streams_per_process) {
    // All processes compare arrivals with the same number, so no communication is needed.
    streams_per_process_.store(static_cast<std::uint32_t>(streams_per_process), std::memory_order_relaxed);
}

std::uint32_t NodeTeam::count_streams() const {
    return streams_per_process_.load(std::memory_order_relaxed) * static_cast<std::uint32_t>(location_.local_count);
}

bool NodeTeam::wait_for_main_threads() {
    const auto waiters = static_cast<std::uint32_t>(location_.local_count);
    return !is_broken() && head_->main_barrier.wait_for_all(waiters, should_spin(waiters), *this);
}

bool NodeTeam::wait_for_node(int /*stream*/) {
    const std::uint32_t waiters = count_streams();
    return !is_broken() && head_->stream_barrier.wait_for_all(waiters, should_spin(waiters), *this);
}

std::uint64_t NodeTeam::node_maximum(std::uint64_t own_value) {
    // Two alternating slots: a process in the next call cannot overwrite a value that a slow process still reads.
    const unsigned turn = contribution_slot_++ % 2;
    find_own_peer().contributions[turn] = own_value;
    if (!wait_for_main_threads()) {
        return own_value;
    }
    std::uint64_t largest = 0;
    for (const Peer& peer : head_->peers()) {
        largest = std::max(largest, peer.contributions[turn]);
    }
    return largest;
}

std::uint64_t NodeTeam::reduce_maximum(std::uint64_t own_value) {
    return node_maximum(own_value);
}

std::string NodeTeam::broadcast(std::string text) {
    const bool is_sender = location_.is_leader();
    if (is_sender) {
        head_->broadcast_length.store(text.size());
    }
    bool complete = wait_for_main_threads();
    const std::size_t length = complete ? head_->broadcast_length.load() : 0;
    if (!is_sender) {
        text.assign(length, '\0');
    }
    // At least one iteration: without the barrier at its end, the next call could change the length before all have
    // read it.
    for (std::size_t offset = 0; complete && (offset == 0 || offset < length);
         offset += NodeSharedState::broadcast_buffer_bytes) {
        const std::size_t part = std::min(length - offset, NodeSharedState::broadcast_buffer_bytes);
        if (is_sender) {
            std::memcpy(head_->broadcast_buffer, text.data() + offset, part);
        }
        complete = wait_for_main_threads();
        if (complete && !is_sender) {
            std::memcpy(text.data() + offset, head_->broadcast_buffer, part);
        }
        complete = complete && wait_for_main_threads();
    }
    if (!complete && !is_sender) {
        throw TeamError("process " + std::to_string(head_->control.lost_process.load()) +
                        " ended before it had told the others what to do");
    }
    return text;
}

std::string NodeTeam::reduce_text(std::string own_text,
                                  const std::function<std::string(std::string, std::string)>& /*join*/) {
    return location_.is_root() ? own_text : std::string();
}

}  // namespace sonde::ranks
