// SPDX-License-Identifier: Apache-2.0
#include "ranks/wire_message.hpp"

#include <algorithm>

namespace sonde::ranks {

void Tally::note(const Report& report, std::int64_t now_ns) {
    if (report.node < 0 || static_cast<std::size_t>(report.node) >= reports_.size()) {
        return;
    }
    auto& known = reports_[static_cast<std::size_t>(report.node)];
    if (!known || known->report.signals.leader_gone != Signals::leader_silent) {
        known = Heard{report, now_ns};
    }
}

void Tally::give_up_silent(std::int64_t now_ns, std::int64_t patience_ns, std::int64_t tick_ns) {
    const std::int64_t slept = looked_ns_ != 0 ? std::max<std::int64_t>(0, now_ns - looked_ns_ - tick_ns) : 0;
    looked_ns_ = now_ns;
    for (auto& heard : reports_) {
        if (!heard || heard->report.signals.leader_gone != 0) {
            continue;
        }
        heard->at_ns += slept;
        if (now_ns - heard->at_ns > patience_ns) {
            heard->report.signals.leader_gone = Signals::leader_silent;
            heard->report.signals.lost_process = heard->report.process;
        }
    }
}

Signals Tally::verdict(std::uint32_t epoch) const {
    Signals all;
    all.epoch = epoch;
    for (const auto& heard : reports_) {
        if (!heard) {
            continue;
        }
        const Signals& one = heard->report.signals;
        if (one.leader_gone != 0) {
            all.leader_gone = one.leader_gone;
            all.lost_process = one.lost_process;
        }
        if (one.epoch == epoch) {
            all.first_done |= one.first_done;
            if (all.stop == 0 && one.stop != 0) {
                all.stop = one.stop;
                all.lost_process = one.lost_process >= 0 ? one.lost_process : all.lost_process;
            }
        }
    }
    return all;
}

Tally::Progress Tally::progress(std::uint32_t epoch, int self, std::int64_t now_ns) const {
    constexpr std::int64_t fresh_ns = 5'000'000'000;
    Progress sum;
    for (std::size_t node = 0; node < reports_.size(); ++node) {
        const auto& heard = reports_[node];
        if (!heard || static_cast<int>(node) == self || now_ns - heard->at_ns > fresh_ns) {
            continue;
        }
        ++sum.nodes;
        if (heard->report.signals.epoch == epoch) {
            sum.bytes += heard->report.bytes;
            sum.operations += heard->report.operations;
        }
    }
    return sum;
}

}  // namespace sonde::ranks
