// SPDX-License-Identifier: Apache-2.0
// Reports for each file what the library did and what would help, as text and as JSON lines.
#include "files/report.hpp"

#include "files/summary.hpp"
#include "model/bypass.hpp"
#include "model/choice.hpp"
#include "model/error_line.hpp"
#include "model/registry.hpp"
#include "model/state.hpp"
#include "model/table.hpp"
#include "system/clock.hpp"
#include "system/critical.hpp"
#include "system/high_descriptor.hpp"
#include "system/own_file.hpp"
#include "system/text.hpp"

#include <fcntl.h>
#include <sys/sysinfo.h>
#include <algorithm>

namespace sonde::buffer {

namespace {

using system::Text;

void append_transfers_line(Text& text, const char* name, const TransferCounts& counts) noexcept {
    text << "  " << name << "  program " << counts.calls << " calls, ";
    text.decimal(counts.bytes / 1000) << " MB -> storage " << counts.storage_calls << " calls, ";
    text.decimal(counts.storage_bytes / 1000) << " MB in ";
    text.decimal(counts.storage_ns / 1'000'000)
        << " s; " << counts.hits << " calls answered from the buffer, " << counts.consecutive << " consecutive, "
        << counts.unaligned << " unaligned\n";
    if (counts.bypassed > 0) {
        text << "         of these " << counts.bypassed
             << " calls went past the buffer, which stood aside because it did not pay: their places and times are not "
                "known\n";
    }
}

/// Files with fewer calls are left out of the report: they show nothing about the buffer.
constexpr std::uint64_t few_calls = 16;

/// Files of few calls: all of them in one line at the end, and a line for each whose calls were no longer seen. True
/// when that is all that will be told.
bool report_in_brief(const settings::Rule& rule, const char* path, const Statistics& counted,
                     const char* why) noexcept {
    const std::uint64_t calls = counted.read.calls + counted.write.calls;
    if (!rule.is_brief || calls >= few_calls) {
        return false;
    }
    if (why != nullptr) {
        Text text(state.report_fd);
        text << "sonde: " << path << "  left as it was after " << calls << (calls == 1 ? " call: " : " calls: ") << why
             << "\n";
        text.flush();
        return true;
    }
    state.few_call_totals.files.fetch_add(1, std::memory_order_relaxed);
    state.few_call_totals.calls.fetch_add(calls, std::memory_order_relaxed);
    state.few_call_totals.bytes.fetch_add(counted.read.bytes + counted.write.bytes, std::memory_order_relaxed);
    return true;
}

/// Appends the estimated gain. `call_ns`: duration of a small call that bypassed the buffer; 0 if there was none.
void append_gain(Text& text, const Statistics& counted, std::uint64_t call_ns) noexcept {
    const std::uint64_t calls = counted.read.calls + counted.write.calls;
    const std::uint64_t below = counted.read.storage_calls + counted.write.storage_calls;
    if (calls < few_calls) {
        return;
    }
    const std::uint64_t asked_bytes = counted.read.bytes + counted.write.bytes;
    const std::uint64_t storage_bytes = counted.read.storage_bytes + counted.write.storage_bytes;
    if (storage_bytes / 4 > asked_bytes) {
        text << "  storage moved " << storage_bytes / (asked_bytes + 1)
             << " times the bytes that the program asked for: most likely slower than without the buffer\n";
        return;
    }
    if (below >= calls) {
        text << "  no call was saved: as fast as without the buffer, at best\n";
        return;
    }
    text << "  " << calls - below << " calls saved";
    if (call_ns == 0) {
        text << "; whether that was faster is not known, because no small call went to storage: time a run without\n";
        return;
    }
    const std::uint64_t saved_ns = (calls - below) * call_ns;
    text << ", of ";
    text.decimal(call_ns) << " us each: about ";
    text.decimal(saved_ns / 1'000'000) << " s, less what copying costs";
    text << (counted.wait_ns > saved_ns ? "; but more than that was spent waiting: slower than without\n" : "\n");
}

/// Returns one sentence of advice, or nullptr if there is none.
const char* choose_advice(const File& file) noexcept {
    const Statistics& counted = file.statistics;
    const std::uint64_t calls = counted.read.calls + counted.write.calls;
    if (file.is_shared && counted.write.calls > 64 && counted.write.storage_calls * 2 > counted.write.calls) {
        return "The ranks' pieces interleave, so that what one rank writes never becomes large: use collective calls "
               "(MPI_File_write_all), which gather them.";
    }
    if (counted.interruptions > 16 && counted.interruptions * 4 > calls) {
        return "Calls that need the file as it is (locks, stat, truncate, appending) interrupt the buffer: leave this "
               "file out (off).";
    }
    const std::uint64_t past = counted.read.bypassed + counted.write.bypassed;
    if (past * 2 > calls && (counted.read.consecutive + counted.write.consecutive) * 2 > calls - past) {
        return "Storage answers these calls as quickly as the buffer would: leave this file out (off).";
    }
    if (counted.suspensions > 0 && (past > 0 || counted.suspensions > 2) &&
        (counted.read.hits + counted.write.hits) * 4 < calls) {
        return "The accesses are scattered: the buffer cannot help here. Leave this file out (off), or give it as many "
               "buffers as it has pages.";
    }
    if (counted.read_aheads_started >= 8 && counted.read_aheads_unused * 2 > counted.read_aheads_started) {
        return "Most of what was read ahead was not used: set prefetch=0.";
    }
    if (counted.read.calls > 64 && counted.read.consecutive * 2 > counted.read.calls && file.pages.prefetch == 0) {
        return "It is read in sequence: prefetch=1 or more would overlap reading with computing.";
    }
    if (calls > 0 && (counted.read.bytes + counted.write.bytes) / calls >= file.pages.page_size) {
        return "The program's own calls are as large as the buffers: nothing is gained here.";
    }
    return nullptr;
}

void append_transfers_json(Text& text, const char* name, const TransferCounts& counts) noexcept {
    text << ",\"" << name << "\":{\"calls\":" << counts.calls << ",\"bytes\":" << counts.bytes
         << ",\"storage_calls\":" << counts.storage_calls << ",\"storage_bytes\":" << counts.storage_bytes
         << ",\"storage_s\":";
    text.seconds(counts.storage_ns) << ",\"hits\":" << counts.hits << ",\"consecutive\":" << counts.consecutive
                                    << ",\"bypassed\":" << counts.bypassed << ",\"unaligned\":" << counts.unaligned
                                    << ",\"sizes\":[";
    for (int i = 0; i < 10; ++i) {
        text << (i > 0 ? "," : "") << counts.sizes[i];
    }
    text << "]}";
}

/// Each process writes one file: <folder>/buffer-<pid>.ndjson.
void open_json_lines_file() noexcept {
    const long pid = raw::call(SYS_getpid);
    if (state.json_report_fd >= 0 && state.json_report_pid == pid) {
        return;
    }
    Text name;
    name << state.json_report_folder << "/buffer-" << std::int64_t{pid} << ".ndjson" << '\0';
    const long fd = system::open_own_file(name.data(), O_WRONLY | O_CREAT | O_APPEND, 0644);
    if (fd < 0) {
        log_unwritable_file("SONDE_IOBUF_LINES", name.data());
        state.json_report_folder = nullptr;  // one line is enough
    }
    const long high = fd >= 0 ? system::duplicate_to_high_descriptor(static_cast<int>(fd)) : -1;
    if (fd >= 0) {
        raw::call(SYS_close, fd);
    }
    state.json_report_fd = static_cast<int>(high);
    mark_own_descriptor(state.json_report_fd);
    state.json_report_pid = pid;
}

/// With option auto: returns the chosen settings, or those that would be chosen now.
BufferChoice get_reported_choice(const File& file) noexcept {
    return file.choice.reason != nullptr ? file.choice : choose_settings(file.watch, file.preferred_io_bytes);
}

void append_choice_json(Text& text, const File& file) noexcept {
    const BufferChoice choice = get_reported_choice(file);
    text << ",\"auto\":{\"buffered\":" << (choice.is_profitable ? "true" : "false")
         << ",\"prefetch\":" << std::uint64_t{choice.prefetch} << ",\"why\":";
    text.json(choice.reason) << "}";
}

void append_choice(Text& text, const File& file) noexcept {
    const BufferChoice choice = get_reported_choice(file);
    if (choice.is_profitable) {
        text << "  chosen by its first " << std::uint64_t{watched_calls} << " calls: " << std::uint64_t{choice.pages}
             << " buffers of " << std::uint64_t{choice.page_size} << " bytes, " << std::uint64_t{choice.prefetch}
             << " read ahead, because " << choice.reason << "\n";
    } else {
        text << "  not buffered: " << choice.reason << "\n";
    }
}

const char* get_guard_name(Guard guard) noexcept {
    constexpr const char* names[] = {"none", "lease", "node table", "your word"};
    return names[static_cast<unsigned>(guard)];
}

const char* get_guard_sentence(Guard guard) noexcept {
    switch (guard) {
        case Guard::None:
            break;
        case Guard::Lease:
            return "  guarded by a lease: another process that opens it waits until all data is handed over\n";
        case Guard::NodeTable:
            return "  guarded by the table of this node: other nodes, and programs without the library, are not "
                   "noticed\n";
        case Guard::UserWord:
            return "  guarded by your word alone: /dev/shm/sonde-preload-UID is missing, or not yours\n";
    }
    return "";
}

void begin_json_line(Text& text, const File& file) noexcept {
    const Statistics& counted = file.statistics;
    text << "{\"type\":\"buffer\",\"path\":";
    text.json(file.path) << ",\"pattern\":";
    text.json(file.rule->pattern) << ",\"page_bytes\":" << std::uint64_t{file.pages.page_size}
                                  << ",\"pages\":" << std::uint64_t{file.pages.max_pages} << ",\"guard\":\""
                                  << get_guard_name(file.last_guard) << "\",\"open_s\":";
    text.seconds(system::now_ns() - file.opened_ns) << ",\"wait_s\":";
    text.seconds(counted.wait_ns) << ",\"seeks\":" << counted.seeks << ",\"syncs\":" << counted.syncs
                                  << ",\"ahead_started\":" << counted.read_aheads_started
                                  << ",\"ahead_used\":" << counted.read_aheads_used
                                  << ",\"behind_started\":" << counted.write_behinds_started
                                  << ",\"interrupted\":" << counted.interruptions
                                  << ",\"suspensions\":" << counted.suspensions;
}

void finish_json_line(Text& text, const char* why, const char* sentence, const Statistics& counted) noexcept {
    if (why != nullptr) {
        text << ",\"release_reason\":";
        text.json(why);
    }
    if (sentence != nullptr) {
        text << ",\"advice\":";
        text.json(sentence);
    }
    append_transfers_json(text, "read", counted.read);
    append_transfers_json(text, "write", counted.write);
    text << "}\n";
}

void write_json_report(const File& file, int fd) noexcept {
    Text text(fd);
    begin_json_line(text, file);
    if (file.rule->automatic) {
        append_choice_json(text, file);
    }
    finish_json_line(text, file.release_reason, choose_advice(file), file.statistics);
    text.flush();
}

void append_transfer_lines(Text& text, const Statistics& counted) noexcept {
    if (counted.read.calls > 0) {
        append_transfers_line(text, "read ", counted.read);
    }
    if (counted.write.calls > 0) {
        append_transfers_line(text, "write", counted.write);
    }
}

void append_reason_and_advice(Text& text, const char* before, const char* why, const char* sentence) noexcept {
    if (why != nullptr) {
        text << before << why << "\n";
    }
    if (sentence != nullptr) {
        text << "  " << sentence << "\n";
    }
}

void write_text_report(const File& file, int fd) noexcept {
    Text text(fd);
    const Statistics& counted = file.statistics;
    text << "sonde: " << file.path << "  (" << file.rule->pattern << ": " << std::uint64_t{file.pages.max_pages}
         << " buffers of " << std::uint64_t{file.pages.page_size} << " bytes)\n";
    append_transfer_lines(text, counted);
    text << "  was open for ";
    text.decimal((system::now_ns() - file.opened_ns) / 1'000'000) << " s, waited ";
    text.decimal(counted.wait_ns / 1'000'000)
        << " s; read ahead " << counted.read_aheads_started << ", used " << counted.read_aheads_used
        << "; written behind " << counted.write_behinds_started << "; seeks " << counted.seeks << ", syncs "
        << counted.syncs << ", interrupted " << counted.interruptions << "\n";
    append_gain(text, counted, file.profitability.small_call_ns);
    if (file.rule->automatic) {
        append_choice(text, file);
    }
    text << get_guard_sentence(file.last_guard);
    append_reason_and_advice(text, "  no longer buffered: ", file.release_reason, choose_advice(file));
    text.flush();
}

}  // namespace

void report_file(File& file) noexcept {
    collect_bypass_counts(file);
    const Statistics& counted = file.statistics;
    if (counted.read.calls + counted.write.calls == 0 && (file.release_reason == nullptr || file.is_inherited)) {
        return;
    }
    add_to_summary(file);
    if (file.rule->verbose && state.report_fd >= 0 &&
        !report_in_brief(*file.rule, file.path, counted, file.release_reason)) {
        write_text_report(file, state.report_fd);
    }
    if (state.json_report_folder != nullptr) {
        open_json_lines_file();
        write_json_report(file, state.json_report_fd);
    }
}

void close_report() noexcept {
    if (state.report_fd > 2) {
        unmark_own_descriptor(state.report_fd);
        raw::call(SYS_close, state.report_fd);
        state.report_fd = 2;
    }
}

void report_at_end() noexcept {
    const system::Critical critical;
    if (state.settings == nullptr || state.is_reported) {
        return;
    }
    state.is_reported = true;
    if (!state.files_lock.try_lock(1'000'000'000)) {
        return;
    }
    for_each_file(
        [](File& file) {
            report_file(file);
            file.statistics = {};
        },
        1'000'000'000);
    state.files_lock.unlock();
    write_summary();
    if (const std::uint64_t files = state.few_call_totals.files.exchange(0)) {
        Text text(state.report_fd);
        text << "sonde: " << files << (files == 1 ? " other file of" : " other files, each of") << " fewer than "
             << few_calls << " calls: together " << state.few_call_totals.calls.exchange(0) << " calls, ";
        text.decimal(state.few_call_totals.bytes.exchange(0) / 1000)
            << " MB (the option verbose in IOBUF_PARAMS tells of each)\n";
        text.flush();
    }
    bool verbose = false;
    for (std::size_t i = 0; i < state.settings->rule_count; ++i) {
        verbose |= state.settings->rules[i].verbose;
    }
    // Prints only in processes with files that could match, because a job also starts many small programs.
    verbose = verbose && state.has_uncovered_files.load(std::memory_order_relaxed);
    for (std::size_t i = 0; verbose && state.report_fd >= 0 && i < state.settings->rule_count; ++i) {
        if (state.settings->rules[i].match_count == 0) {
            Text text(state.report_fd);
            text << "sonde: the pattern \"" << state.settings->rules[i].pattern
                 << "\" matched no file of this program.\n";
            text.flush();
        }
    }
}

}  // namespace sonde::buffer
