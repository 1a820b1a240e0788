// SPDX-License-Identifier: Apache-2.0
#include "ranks/wire_message.hpp"

#include <algorithm>
#include <type_traits>

namespace sonde::ranks {

static_assert(std::has_unique_object_representations_v<NodeReport> && sizeof(NodeReport) == 56);
static_assert(std::has_unique_object_representations_v<HubReply> && sizeof(HubReply) == 24);
static_assert(offsetof(Datagram<NodeReport>, sequence) == 8 && sizeof(Datagram<NodeReport>) == 80);
static_assert(offsetof(Datagram<HubReply>, sequence) == 8 && sizeof(Datagram<HubReply>) == 48);

void ReportTable::add_report(const NodeReport& report, std::int64_t now_ns) {
    if (report.node < 0 || static_cast<std::size_t>(report.node) >= reports_.size()) {
        return;
    }
    auto& stored = reports_[static_cast<std::size_t>(report.node)];
    if (!stored || stored->report.signals.leader_gone != NodeSignals::leader_silent) {
        stored = TimedReport{report, now_ns};
    }
}

void ReportTable::mark_silent_nodes(std::int64_t now_ns, std::int64_t patience_ns, std::int64_t tick_ns, bool is_deaf) {
    const std::int64_t passed = last_check_ns_ != 0 ? now_ns - last_check_ns_ : 0;
    const std::int64_t slept = is_deaf ? passed : std::max<std::int64_t>(0, passed - tick_ns);
    last_check_ns_ = now_ns;
    for (auto& stored : reports_) {
        if (!stored || stored->report.signals.leader_gone != 0) {
            continue;
        }
        stored->at_ns += slept;
        if (now_ns - stored->at_ns > patience_ns) {
            stored->report.signals.leader_gone = NodeSignals::leader_silent;
            stored->report.signals.lost_process = stored->report.process;
        }
    }
}

NodeSignals ReportTable::combine_signals(std::uint32_t epoch) const {
    NodeSignals combined;
    combined.epoch = epoch;
    for (const auto& stored : reports_) {
        if (!stored) {
            continue;
        }
        const NodeSignals& signals = stored->report.signals;
        if (signals.leader_gone != 0) {
            combined.leader_gone = signals.leader_gone;
            combined.lost_process = signals.lost_process;
        }
        if (signals.epoch == epoch) {
            combined.first_done |= signals.first_done;
            if (combined.stop == 0 && signals.stop != 0) {
                combined.stop = signals.stop;
                combined.lost_process = signals.lost_process >= 0 ? signals.lost_process : combined.lost_process;
            }
        }
    }
    return combined;
}

ReportTable::OtherNodesProgress ReportTable::sum_progress(std::uint32_t epoch, int self, std::int64_t now_ns) const {
    constexpr std::int64_t fresh_ns = 5'000'000'000;
    OtherNodesProgress sum;
    for (std::size_t node = 0; node < reports_.size(); ++node) {
        const auto& stored = reports_[node];
        if (!stored || static_cast<int>(node) == self || now_ns - stored->at_ns > fresh_ns) {
            continue;
        }
        ++sum.nodes;
        if (stored->report.signals.epoch == epoch) {
            sum.bytes += stored->report.bytes;
            sum.operations += stored->report.operations;
        }
    }
    return sum;
}

RejectedDatagrams ReportTable::sum_rejected() const {
    RejectedDatagrams sum;
    for (const auto& stored : reports_) {
        if (stored) {
            sum.foreign += stored->report.foreign;
            sum.repeated += stored->report.repeated;
        }
    }
    return sum;
}

}  // namespace sonde::ranks
