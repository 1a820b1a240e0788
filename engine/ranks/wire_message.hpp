// SPDX-License-Identifier: Apache-2.0
// The messages of wire processes, and how the hub combines them. Plain data between machines of the same architecture.
// Every datagram carries the token of the run; others are ignored.
#pragma once

#include <array>
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

struct NodeReport {
    std::uint64_t token = 0;
    std::int32_t node = 0;
    NodeSignals signals;
    std::uint64_t bytes = 0, operations = 0;
    std::int32_t process = -1;  ///< of the leader of that node
};

struct HubReply {
    std::uint64_t token = 0;
    NodeSignals signals;
};

/// The last report of each node, at the hub.
class ReportTable {
 public:
    explicit ReportTable(int nodes) : reports_(static_cast<std::size_t>(nodes)) {}
    /// Ignores unknown nodes and nodes that were marked as silent.
    void add_report(const NodeReport& report, std::int64_t now_ns);
    /// Marks nodes as lost whose last report is older than `patience_ns`: they hang, or their network is down. Time in
    /// which the hub itself did not run does not count; call it at least every `tick_ns`.
    void mark_silent_nodes(std::int64_t now_ns, std::int64_t patience_ns, std::int64_t tick_ns);
    /// The combined state for a node in `epoch`. Stop flags count within one epoch only, because the flag of a finished
    /// phase must not stop the next one.
    NodeSignals combine_signals(std::uint32_t epoch) const;

    struct OtherNodesProgress {
        std::uint64_t bytes = 0, operations = 0;
        int nodes = 0;
    };
    /// Sum over all nodes but `self` that are in `epoch`; only reports of the last five seconds count.
    OtherNodesProgress sum_progress(std::uint32_t epoch, int self, std::int64_t now_ns) const;

 private:
    struct TimedReport {
        NodeReport report;
        std::int64_t at_ns = 0;
    };
    std::vector<std::optional<TimedReport>> reports_;
    std::int64_t last_check_ns_ = 0;  // 0 = not yet
};

/// Network addresses of a hub: IPv6, or mapped IPv4.
struct HubAddresses {
    static constexpr std::size_t max_count = 8;
    std::uint16_t port = 0;
    std::uint16_t count = 0;
    std::array<std::array<std::uint8_t, 16>, max_count> address{};
};

/// What the leader of a node tells the wire process of its node when the team is formed.
struct WireAssignment {
    std::uint64_t token = 0;  ///< of the run
    int node = 0, nodes = 1;
    int process = 0;  ///< of the leader: it is reported as lost when it dies
    std::uint64_t head_bytes = 0;
    std::int64_t patience_ns = 0;  ///< a node without reports for this time counts as lost
    HubAddresses hub;              ///< those of node 0
};

}  // namespace sonde::ranks
