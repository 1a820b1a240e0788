// SPDX-License-Identifier: Apache-2.0
// Starts the library: settings, the table of descriptors, the memory limit.
#include "files/start.hpp"

#include "files/processes.hpp"
#include "model/bypass.hpp"
#include "model/candidate_table.hpp"
#include "model/state.hpp"
#include "model/table.hpp"
#include "modes/lease_breaks.hpp"
#include "workers/pool.hpp"

#include <sys/sysinfo.h>
#include <algorithm>

namespace sonde::buffer {

void start_buffering(const StorageCalls& below, settings::Settings& settings, int report, const char* lines) noexcept {
    state.storage = below;
    state.settings = &settings;
    state.is_verifying = settings.stage == settings::Stage::Verify;
    state.report_fd = report;
    mark_own_descriptor(report);
    state.json_report_folder = lines;
    if (table == nullptr) {
        // 512 KiB of addresses; memory only for the part that descriptors reach.
        table = static_cast<std::atomic<Description*>*>(system::map_bytes(sizeof(*table) * max_descriptors, true));
    }
    start_candidates();
    install_worker_starter();
    install_lease_break_handler();
    struct sysinfo machine {};
    std::uint64_t share = settings.limits.memory;
    if (raw::call(SYS_sysinfo, raw::pointer_to_number(&machine)) == 0) {
        const std::uint64_t available =
            (static_cast<std::uint64_t>(machine.freeram) + machine.bufferram) * machine.mem_unit;
        share = std::max<std::uint64_t>(available / 4, 16U << 20U);
    }
    state.max_memory_bytes.store(std::min(settings.limits.memory, share), std::memory_order_relaxed);
    read_file_size_limit();
    start_bypass();
}

}  // namespace sonde::buffer
