// SPDX-License-Identifier: Apache-2.0
#include "files/summary.hpp"

#include "model/error_line.hpp"
#include "model/state.hpp"
#include "system/own_file.hpp"
#include "system/system_log.hpp"
#include "system/text.hpp"

#include <cstring>
#include <initializer_list>

namespace sonde::buffer {

void add_to_summary(const File& file) noexcept {
    const Statistics& counted = file.statistics;
    BufferState::ProcessTotals& total = state.process_totals;
    const bool gains = file.rule->automatic ? file.choice.is_profitable : file.last_guard != Guard::None;
    total.files.fetch_add(1, std::memory_order_relaxed);
    total.buffered.fetch_add(gains ? 1 : 0, std::memory_order_relaxed);
    for (const TransferCounts* direction : {&counted.read, &counted.write}) {
        total.calls.fetch_add(direction->calls, std::memory_order_relaxed);
        total.bytes.fetch_add(direction->bytes, std::memory_order_relaxed);
        total.storage_calls.fetch_add(direction->storage_calls, std::memory_order_relaxed);
        total.storage_bytes.fetch_add(direction->storage_bytes, std::memory_order_relaxed);
    }
    total.wait_ns.fetch_add(counted.wait_ns, std::memory_order_relaxed);
}

void clear_summary() noexcept {
    BufferState::ProcessTotals& total = state.process_totals;
    total.files = total.buffered = total.calls = total.bytes = total.storage_calls = total.storage_bytes = 0;
    total.wait_ns = total.differences = total.lost_errors = 0;
}

void write_summary() noexcept {
    const BufferState::ProcessTotals& total = state.process_totals;
    const settings::Settings& settings = *state.settings;
    if (settings.summary == nullptr || !settings.is_first_rank || total.files.load(std::memory_order_relaxed) == 0) {
        return;
    }
    constexpr const char* stages[] = {"buffer", "count", "verify"};
    constexpr const char* priority = "<14>";  // user, information
    system::Text text;
    text << priority << "sonde-iobuf: {\"type\":\"summary\",\"program\":";
    text.json(settings.program != nullptr ? settings.program : "") << ",\"job\":";
    text.json(settings.job != nullptr ? settings.job : "")
        << ",\"stage\":\"" << stages[static_cast<unsigned>(settings.stage)] << "\",\"files\":" << total.files.load()
        << ",\"buffered\":" << total.buffered.load() << ",\"calls\":" << total.calls.load()
        << ",\"bytes\":" << total.bytes.load() << ",\"storage_calls\":" << total.storage_calls.load()
        << ",\"storage_bytes\":" << total.storage_bytes.load() << ",\"wait_s\":";
    text.seconds(total.wait_ns.load()) << ",\"differences\":" << total.differences.load()
                                       << ",\"lost_errors\":" << total.lost_errors.load() << "}\n";
    if (text.data()[text.length() - 1] != '\n') {
        return;  // names that do not fit
    }
    if (std::strcmp(settings.summary, "syslog") == 0) {
        system::send_to_system_log(text.data(), text.length() - 1);
        return;
    }
    const long fd = system::open_own_file(settings.summary, O_WRONLY | O_CREAT | O_APPEND, 0644);
    const char* line = std::strchr(text.data(), '{');  // a path holds this sign after the first one only
    if (fd < 0) {
        log_unwritable_file("SONDE_IOBUF_SUMMARY", settings.summary);
        return;
    }
    raw::call(SYS_write, fd, raw::pointer_to_number(line), static_cast<long>(text.data() + text.length() - line));
    raw::call(SYS_close, fd);
}

}  // namespace sonde::buffer
