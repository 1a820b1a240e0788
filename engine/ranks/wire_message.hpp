// SPDX-License-Identifier: Apache-2.0
// What the wire processes of different nodes say to each other, and how what they hear becomes one verdict.
// Plain data between machines of one kind; every datagram carries the token of the run, and those without are ignored.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace sonde::ranks {

/// The state of one node, or what all nodes together come to.
struct Signals {
    std::uint32_t epoch = 0;  ///< barriers passed: tells the phases apart
    std::uint32_t stop = 0;   ///< NodeControl::stop
    std::uint32_t first_done = 0;
    std::int32_t lost_process = -1;
    std::uint32_t leader_gone = 0;  ///< a leader_… below: waiting by MPI is in vain
    static constexpr std::uint32_t leader_died = 1, leader_silent = 2;
};

struct Report {
    std::uint64_t token = 0;
    std::int32_t node = 0;
    Signals signals;
    std::uint64_t bytes = 0, operations = 0;
    std::int32_t process = -1;  ///< of the leader of that node
};

struct Verdict {
    std::uint64_t token = 0;
    Signals signals;
};

/// What the hub knows.
class Tally {
 public:
    explicit Tally(int nodes) : reports_(static_cast<std::size_t>(nodes)) {}
    /// Ignores nodes that do not exist, and those that were given up.
    void note(const Report& report, std::int64_t now_ns);
    /// Gives up the nodes that were heard once and not for longer than `patience_ns`: they hang, or their network is
    /// gone. Nobody is blamed for what the hub itself has slept through: call it at least every `tick_ns`.
    void give_up_silent(std::int64_t now_ns, std::int64_t patience_ns, std::int64_t tick_ns);
    /// What a node that is in `epoch` has to know: stops count within one epoch only, since the flag of a finished
    /// phase must not stop the next one.
    Signals verdict(std::uint32_t epoch) const;

    struct Progress {
        std::uint64_t bytes = 0, operations = 0;
        int nodes = 0;
    };
    /// Sum over all nodes but `self` that are in `epoch`; nodes heard of within the last five seconds are counted.
    Progress progress(std::uint32_t epoch, int self, std::int64_t now_ns) const;

 private:
    struct Heard {
        Report report;
        std::int64_t at_ns = 0;
    };
    std::vector<std::optional<Heard>> reports_;
    std::int64_t looked_ns_ = 0;  // 0 = not yet
};

/// Where a hub can be reached: IPv6 addresses, those of IPv4 mapped.
struct Addresses {
    static constexpr std::size_t most = 8;
    std::uint16_t port = 0;
    std::uint16_t count = 0;
    std::array<std::array<std::uint8_t, 16>, most> address{};
};

}  // namespace sonde::ranks
