// SPDX-License-Identifier: Apache-2.0
// Datagrams with any content, from any node: the hub's table keeps to its nodes and marks none as lost that reports.
#include "ranks/wire_message.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace sonde::ranks;
    constexpr int nodes = 3;
    constexpr std::int64_t second_ns = 1'000'000'000;
    ReportTable table(nodes);
    std::int64_t now_ns = second_ns;
    for (; size > 0; now_ns += second_ns) {
        NodeReport report;
        const std::size_t length = std::min(size, sizeof report);
        std::memcpy(static_cast<void*>(&report), data, length);
        data += length;
        size -= length;
        table.add_report(report, now_ns);
        table.mark_silent_nodes(now_ns, 5 * second_ns, second_ns);
        table.combine_signals(report.signals.epoch);
        const auto progress = table.sum_progress(report.signals.epoch, 0, now_ns);
        if (progress.nodes > nodes - 1) {
            std::abort();
        }
    }
    return 0;
}
