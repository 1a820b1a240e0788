// SPDX-License-Identifier: Apache-2.0
// The beginning: settings, the table of descriptors, how much memory may be used.
#include "buffer/start.hpp"

#include "buffer/passing.hpp"
#include "buffer/processes.hpp"
#include "buffer/state.hpp"
#include "buffer/table.hpp"

#include <sys/sysinfo.h>
#include <algorithm>

namespace sonde::buffer {

void start(const Below& below, settings::Settings& settings, int report, const char* lines) noexcept {
    state.below = below;
    state.settings = &settings;
    state.report = report;
    note_private(report, true);
    state.lines_folder = lines;
    if (table == nullptr) {
        // 8 MiB of addresses; memory only for the part that descriptors reach.
        table = static_cast<std::atomic<Description*>*>(system::map_bytes(sizeof(*table) * most_descriptors, true));
    }
    takes_files.store(settings.count > 0 && (!settings.promised_only || settings.any_promised()));
    struct sysinfo machine {};
    std::uint64_t share = settings.limits.memory;
    if (raw::call(SYS_sysinfo, raw::number(&machine)) == 0) {
        const std::uint64_t available =
            (static_cast<std::uint64_t>(machine.freeram) + machine.bufferram) * machine.mem_unit;
        share = std::max<std::uint64_t>(available / 100 * settings.limits.node_share, 16U << 20U);
    }
    state.memory_most.store(std::min(settings.limits.memory, share), std::memory_order_relaxed);
    read_limits();
    start_places();
}

}  // namespace sonde::buffer
