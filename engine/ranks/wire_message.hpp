// SPDX-License-Identifier: Apache-2.0
// The messages of wire processes, and how the hub combines them. Plain data between machines of the same architecture.
// Every datagram carries a keyed hash of its content, so that only processes of the run can make one, and a sequence
// number, so that a copy of an earlier one is recognized.
#pragma once

#include "ranks/keyed_hash.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace sonde::ranks {

/// The state of one node, or the combined state of all nodes.
struct NodeSignals {
    std::uint32_t epoch = 0;  ///< number of completed barriers: distinguishes phases
    std::uint32_t stop = 0;   ///< NodeControl::stop
    std::uint32_t first_done = 0;
    std::int32_t lost_process = -1;
    std::uint32_t leader_gone = 0;  ///< a leader_… constant below, 0 = none: waits in MPI must end
    static constexpr std::uint32_t leader_died = 1, leader_silent = 2;
};

/// From a node to the hub. No padding: all bytes are hashed.
struct NodeReport {
    static constexpr std::uint32_t kind = 1;
    std::int32_t node = 0;  ///< sender
    NodeSignals signals{};
    std::int32_t process = -1;   ///< of the leader of that node
    std::uint32_t repeated = 0;  ///< datagrams that this node rejected: see RejectedDatagrams
    std::uint64_t foreign = 0;
    std::uint64_t bytes = 0, operations = 0;
};

/// From the hub to a node.
struct HubReply {
    static constexpr std::uint32_t kind = 2;
    std::int32_t node = 0;  ///< recipient
    NodeSignals signals{};
};

/// One datagram.
template <class Message>
struct Datagram {
    std::uint64_t hash = 0;      ///< of everything below
    std::uint64_t sequence = 0;  ///< from 1, increases with each datagram of a sender
    std::uint32_t kind = Message::kind;
    std::uint32_t reserved = 0;
    Message message{};

    void sign(const HashKey& key) { hash = compute_authentication_code(key); }
    bool is_authentic(const HashKey& key) const {
        return kind == Message::kind && hash == compute_authentication_code(key);
    }

 private:
    std::uint64_t compute_authentication_code(const HashKey& key) const {
        return compute_keyed_hash(key, reinterpret_cast<const std::byte*>(&sequence), sizeof *this - sizeof hash);
    }
};

/// Refuses copies: accepts each sequence number of a sender once, and only in ascending order. Datagrams carry states,
/// so one that a later one has overtaken is worth nothing.
class ReplayGuard {
 public:
    explicit ReplayGuard(int senders) : last_(static_cast<std::size_t>(senders), 0) {}
    /// False also for unknown senders.
    bool accept(std::int32_t sender, std::uint64_t sequence) {
        if (sender < 0 || static_cast<std::size_t>(sender) >= last_.size() ||
            sequence <= last_[static_cast<std::size_t>(sender)]) {
            return false;
        }
        last_[static_cast<std::size_t>(sender)] = sequence;
        return true;
    }

 private:
    std::vector<std::uint64_t> last_;
};

/// Datagrams that arrived at the ports of a run and were not used.
struct RejectedDatagrams {
    std::uint64_t foreign = 0;   ///< wrong hash or size: not sent by this run, or changed on the way
    std::uint64_t repeated = 0;  ///< copies of earlier datagrams of this run, or overtaken ones
};

/// The last report of each node, at the hub.
class ReportTable {
 public:
    explicit ReportTable(int nodes) : reports_(static_cast<std::size_t>(nodes)) {}
    /// Ignores unknown nodes and nodes that were marked as silent.
    void add_report(const NodeReport& report, std::int64_t now_ns);
    /// Marks nodes as lost whose last report is older than `patience_ns`: they hang, or their network is down. Time in
    /// which the hub itself did not run does not count; call it at least every `tick_ns`. `is_deaf`: the kernel has
    /// dropped datagrams since the last call, so silence since then proves nothing.
    void mark_silent_nodes(std::int64_t now_ns, std::int64_t patience_ns, std::int64_t tick_ns, bool is_deaf = false);
    /// The combined state for a node in `epoch`. Stop flags count within one epoch only, because the flag of a finished
    /// phase must not stop the next one.
    NodeSignals combine_signals(std::uint32_t epoch) const;

    struct OtherNodesProgress {
        std::uint64_t bytes = 0, operations = 0;
        int nodes = 0;
    };
    /// Sum over all nodes but `self` that are in `epoch`; only reports of the last five seconds count.
    OtherNodesProgress sum_progress(std::uint32_t epoch, int self, std::int64_t now_ns) const;
    /// Sum of the rejected datagrams of all nodes, as of their last reports.
    RejectedDatagrams sum_rejected() const;

 private:
    struct TimedReport {
        NodeReport report;
        std::int64_t at_ns = 0;
    };
    std::vector<std::optional<TimedReport>> reports_;
    std::int64_t last_check_ns_ = 0;  // 0 = not yet
};

/// Message from the leader of a node to its wire process when the team is formed.
struct WireProcessSettings {
    int node = 0, nodes = 1;
    int process = 0;  ///< of the leader: it is reported as lost when it dies
    std::uint64_t head_bytes = 0;
    std::int64_t patience_ns = 0;  ///< a node without reports for this time counts as lost
    HashKey key{};                 ///< of the run: random, shared through MPI
};

}  // namespace sonde::ranks
