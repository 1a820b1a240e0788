// SPDX-License-Identifier: Apache-2.0
#include "ranks/node_team.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>

namespace sonde::ranks {
namespace {

constexpr std::size_t line = 64;

std::size_t head_only() {
    return (sizeof(NodeHead) + line - 1) / line * line;
}

void make_life(pthread_mutex_t& life) {
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&life, &kind);
    pthread_mutexattr_destroy(&kind);
}

// A held mutex says EBUSY. Anything else means that the owner is gone; one that we got by accident is given back
// unrepaired, so that everybody after us hears ENOTRECOVERABLE.
bool alive(Peer& peer) {
    const int answer = pthread_mutex_trylock(&peer.life);
    if (answer == EBUSY) {
        return true;
    }
    if (answer == 0 || answer == EOWNERDEAD) {
        pthread_mutex_unlock(&peer.life);
    }
    return false;
}

// While the processes join, one that never comes is as good as dead: the kernel knows nothing of it yet.
class Patience final : public Watch {
 public:
    explicit Patience(NodeHead& head) : head_(head) {}
    bool intact(bool thorough) override {
        if (!head_.intact(thorough)) {
            return false;
        }
        if (!thorough || std::chrono::steady_clock::now() < end_) {
            return true;
        }
        const auto peers = head_.peers();
        const auto absent = std::find_if(peers.begin(), peers.end(),
                                         [](const Peer& peer) { return peer.state.load() == Peer::absent; });
        if (absent != peers.end()) {
            head_.lose(static_cast<int>(absent - peers.begin()));
        }
        return absent == peers.end();
    }

 private:
    NodeHead& head_;
    std::chrono::steady_clock::time_point end_ = std::chrono::steady_clock::now() + std::chrono::seconds(30);
};

}  // namespace

std::size_t NodeHead::bytes(int locals) {
    return head_only() + sizeof(Peer) * static_cast<std::size_t>(locals);
}

std::span<Peer> NodeHead::peers() {
    auto* first = reinterpret_cast<std::byte*>(this) + head_only();
    return {std::launder(reinterpret_cast<Peer*>(first)), static_cast<std::size_t>(locals)};
}

NodeHead* NodeHead::make(std::byte* memory, int locals) {
    auto* head = new (memory) NodeHead;
    head->locals = locals;
    auto* first = memory + head_only();
    for (int local = 0; local < locals; ++local) {
        auto* peer = new (first + sizeof(Peer) * static_cast<std::size_t>(local)) Peer;
        make_life(peer->life);
    }
    return head;
}

NodeHead* NodeHead::at(std::byte* memory) {
    return std::launder(reinterpret_cast<NodeHead*>(memory));
}

void NodeHead::lose(int local) {
    lose_process(peers()[static_cast<std::size_t>(local)].process.load(), here);
}

void NodeHead::lose_process(int process, std::uint32_t extent) {
    int none = -1;
    control.lost_process.compare_exchange_strong(none, process);
    std::uint32_t known = broken.load();
    while (known < extent && !broken.compare_exchange_weak(known, extent)) {
    }
    // The first reason stays: an interrupted run remains an interrupted run.
    std::uint32_t running = 0;
    control.stop.compare_exchange_strong(running, NodeControl::quit_peer_lost);
    streams.alarm();
    mains.alarm();
}

bool NodeHead::intact(bool thorough) {
    if (broken.load(std::memory_order_acquire) != 0) {
        return false;
    }
    if (!thorough) {
        return true;
    }
    const auto all = peers();
    for (std::size_t local = 0; local < all.size(); ++local) {
        if (all[local].state.load(std::memory_order_acquire) == Peer::present && !alive(all[local]) &&
            all[local].state.load(std::memory_order_acquire) == Peer::present) {
            lose(static_cast<int>(local));
            return false;
        }
    }
    return true;
}

NodeTeam::NodeTeam(Arena arena, NodeHead* head, Place place, std::string description)
    : place_(std::move(place)), description_(std::move(description)), arena_(std::move(arena)), head_(head) {
    Peer& me = self();
    CPU_ZERO(&me.cores);
    sched_getaffinity(0, sizeof me.cores, &me.cores);
    pthread_mutex_lock(&me.life);
    me.process.store(place_.process);
    me.state.store(Peer::present, std::memory_order_release);
    Patience patience(*head_);
    const auto waiters = static_cast<std::uint32_t>(place_.locals);
    if (broken() || !head_->mains.pass(waiters, false, patience)) {
        me.state.store(Peer::left, std::memory_order_release);
        pthread_mutex_unlock(&me.life);
        throw TeamError("a process of " + place_.host + " ended or hung while the " + std::to_string(waiters) +
                        " processes of this node were still meeting");
    }
    // Launchers bind ranks to different cores: what counts is the cores of all together.
    cpu_set_t together;
    CPU_ZERO(&together);
    for (Peer& peer : head_->peers()) {
        CPU_OR(&together, &together, &peer.cores);
    }
    cores_ = static_cast<std::uint32_t>(std::max(1, CPU_COUNT(&together)));
}

NodeTeam::~NodeTeam() {
    Peer& me = self();
    if (!finished_) {
        head_->lose(place_.local);
    }
    me.state.store(Peer::left, std::memory_order_release);
    // The kernel must not find the mutex in our list after the memory is unmapped.
    pthread_mutex_unlock(&me.life);
}

void NodeTeam::finish() {
    if (!finished_ && meet_mains()) {
        finished_ = true;
        self().state.store(Peer::left, std::memory_order_release);
    }
}

void NodeTeam::arrange(int streams_per_process) {
    // Everybody counts arrivals against the same number, so there is nothing to tell the others.
    streams_per_process_.store(static_cast<std::uint32_t>(streams_per_process), std::memory_order_relaxed);
}

std::uint32_t NodeTeam::streams() const {
    return streams_per_process_.load(std::memory_order_relaxed) * static_cast<std::uint32_t>(place_.locals);
}

bool NodeTeam::meet_mains() {
    const auto waiters = static_cast<std::uint32_t>(place_.locals);
    return !broken() && head_->mains.pass(waiters, spin(waiters), *this);
}

bool NodeTeam::meet_node(int /*stream*/) {
    const std::uint32_t waiters = streams();
    return !broken() && head_->streams.pass(waiters, spin(waiters), *this);
}

std::uint64_t NodeTeam::node_maximum(std::uint64_t mine) {
    // Two values by turns: who is already at the next call cannot overwrite what a slow one still reads.
    const unsigned turn = turn_++ % 2;
    self().said[turn] = mine;
    if (!meet_mains()) {
        return mine;
    }
    std::uint64_t largest = 0;
    for (const Peer& peer : head_->peers()) {
        largest = std::max(largest, peer.said[turn]);
    }
    return largest;
}

std::uint64_t NodeTeam::maximum(std::uint64_t mine) {
    return node_maximum(mine);
}

std::string NodeTeam::broadcast(std::string text) {
    const bool speaker = place_.leader();
    if (speaker) {
        head_->board_length.store(text.size());
    }
    bool complete = meet_mains();
    const std::size_t length = complete ? head_->board_length.load() : 0;
    if (!speaker) {
        text.assign(length, '\0');
    }
    // Once at least: without the meeting at its end, the next call could change the length before all have read it.
    for (std::size_t at = 0; complete && (at == 0 || at < length); at += NodeHead::board_bytes) {
        const std::size_t part = std::min(length - at, NodeHead::board_bytes);
        if (speaker) {
            std::memcpy(head_->board, text.data() + at, part);
        }
        complete = meet_mains();
        if (complete && !speaker) {
            std::memcpy(text.data() + at, head_->board, part);
        }
        complete = complete && meet_mains();
    }
    if (!complete && !speaker) {
        throw TeamError("process " + std::to_string(head_->control.lost_process.load()) +
                        " ended before it had told the others what to do");
    }
    return text;
}

std::string NodeTeam::reduce(std::string mine, const std::function<std::string(std::string, std::string)>& /*join*/) {
    return place_.root() ? mine : std::string();
}

}  // namespace sonde::ranks
