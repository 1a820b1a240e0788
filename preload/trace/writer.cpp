// SPDX-License-Identifier: Apache-2.0
// The trace of one process as NDJSON, written when it ends: schema/trace says what each member means.
#include "system/own_file.hpp"
#include "system/text.hpp"
#include "trace/record.hpp"

#include <fcntl.h>
#include <sys/utsname.h>
#include <algorithm>
#include <cstring>
#include <iterator>

namespace sonde::trace {

namespace {

using system::FrequentValues;
using system::Text;

constexpr const char* kind_names[] = {"open",     "read", "write", "seek", "stat", "sync",
                                      "truncate", "map",  "close", "name", "other"};
static_assert(std::size(kind_names) == static_cast<unsigned>(Kind::count));

/// ns per tick as 32.32 fixed point, from the whole life of the process.
struct TickScale {
    std::uint64_t multiplier;
    std::uint64_t ticks_to_ns(std::uint64_t ticks) const noexcept {
        __extension__ using Wide = unsigned __int128;
        return static_cast<std::uint64_t>((static_cast<Wide>(ticks) * multiplier) >> 32U);
    }
};

TickScale measure_tick_rate() noexcept {
    constexpr std::uint64_t min_ns = 1'000'000;
    std::uint64_t ticks = 0;
    std::uint64_t spent = 0;
    do {  // a shorter time would not say how long a tick is
        ticks = system::ticks() - state.began_ticks;
        spent = system::now_ns() - state.began_ns;
    } while (spent < min_ns);
    __extension__ using Wide = unsigned __int128;
    return {static_cast<std::uint64_t>((static_cast<Wide>(spent) << 32U) / std::max<std::uint64_t>(ticks, 1))};
}

std::size_t read_small_file(const char* path, char* into, std::size_t room) noexcept {
    const long fd = raw::call(SYS_openat, AT_FDCWD, raw::pointer_to_number(path), O_RDONLY | O_CLOEXEC);
    long bytes_read = 0;
    if (fd >= 0) {
        bytes_read = raw::call(SYS_read, fd, raw::pointer_to_number(into), static_cast<long>(room - 1));
        raw::call(SYS_close, fd);
    }
    const std::size_t length = bytes_read > 0 ? static_cast<std::size_t>(bytes_read) : 0;
    into[length] = 0;
    return length;
}

/// Reads the kernel's number of read and write calls of this process; returns false if the kernel does not count them.
bool read_kernel_counts(std::uint64_t& reads, std::uint64_t& writes) noexcept {
    char text[512];
    if (read_small_file("/proc/self/io", text, sizeof(text)) == 0) {
        return false;
    }
    const auto value = [&text](const char* name, std::uint64_t& into) {
        const char* digits = std::strstr(text, name);
        if (digits == nullptr) {
            return false;
        }
        into = 0;
        for (digits += std::strlen(name); *digits >= '0' && *digits <= '9'; ++digits) {
            into = into * 10 + static_cast<std::uint64_t>(*digits - '0');
        }
        return true;
    };
    return value("syscr: ", reads) && value("syscw: ", writes);
}

void append_command_line(Text& text) noexcept {
    char line[2048];
    const std::size_t length = read_small_file("/proc/self/cmdline", line, sizeof(line));
    text << "\"command\":[";
    for (std::size_t position = 0; position < length; position += std::strlen(line + position) + 1) {
        text << (position > 0 ? "," : "");
        text.json(line + position);
    }
    text << "]";
}

void append_process_line(Text& text, const TickScale& scale) noexcept {
    struct utsname machine {};
    raw::call(SYS_uname, raw::pointer_to_number(&machine));
    text << "{\"type\":\"process\",\"schema\":\"sonde-trace/1\",\"pid\":" << std::int64_t{raw::call(SYS_getpid)}
         << ",\"parent\":" << std::int64_t{raw::call(SYS_getppid)} << ",\"host\":";
    text.json(machine.nodename) << ",";
    append_command_line(text);
    text << ",\"started_unix_s\":";
    text.seconds(state.began_wall_ns) << ",\"seconds\":";
    text.seconds(system::now_ns() - state.began_ns)
        << ",\"tick_ps\":" << ((scale.multiplier * 1000) >> 32U)
        << ",\"files\":" << std::uint64_t{state.records.load(std::memory_order_acquire)}
        << ",\"files_left_out\":" << state.unrecorded_opens;
    const std::uint64_t event_count = state.events_seen.load(std::memory_order_relaxed);
    text << ",\"events\":" << std::min<std::uint64_t>(event_count, state.max_events)
         << ",\"events_left_out\":" << (event_count > state.max_events ? event_count - state.max_events : 0);
    std::uint64_t reads = 0;
    std::uint64_t writes = 0;
    if (read_kernel_counts(reads, writes)) {
        text << ",\"kernel_reads\":" << reads << ",\"kernel_writes\":" << writes;
    }
    text << ",\"paths\":{";
    const char* comma = "";
    for (const Kind kind : {Kind::Stat, Kind::Name}) {
        const PathCallTotals& counts = state.path_calls[static_cast<unsigned>(kind)];
        text << comma << "\"" << kind_names[static_cast<unsigned>(kind)]
             << "\":{\"calls\":" << counts.calls.load(std::memory_order_relaxed) << ",\"s\":";
        text.seconds(scale.ticks_to_ns(counts.ticks.load(std::memory_order_relaxed))) << "}";
        comma = ",";
    }
    text << "}}\n";
}

void append_access_counts(Text& text, const char* name, const AccessCounts& counts, const TickScale& scale) noexcept {
    text << ",\"" << name << "\":{\"calls\":" << counts.calls << ",\"bytes\":" << counts.bytes << ",\"s\":";
    text.seconds(scale.ticks_to_ns(counts.ticks)) << ",\"slowest_s\":";
    text.seconds(scale.ticks_to_ns(counts.slowest))
        << ",\"consecutive\":" << counts.consecutive << ",\"sequential\":" << counts.sequential
        << ",\"errors\":" << counts.errors << ",\"short\":" << counts.short_transfers
        << ",\"highest\":" << counts.highest_offset << ",\"first_s\":";
    text.seconds(scale.ticks_to_ns(counts.first - std::min(counts.first, state.began_ticks))) << ",\"last_s\":";
    text.seconds(scale.ticks_to_ns(counts.last - std::min(counts.last, state.began_ticks))) << ",\"sizes\":[";
    for (unsigned i = 0; i < 10; ++i) {
        text << (i > 0 ? "," : "") << counts.sizes[i];
    }
    text << "]}";
}

void append_frequent_values(Text& text, const char* name, const FrequentValues& values) noexcept {
    unsigned order[FrequentValues::capacity];
    for (unsigned i = 0; i < FrequentValues::capacity; ++i) {
        order[i] = i;
    }
    for (unsigned i = 1; i < FrequentValues::capacity; ++i) {  // a handful: insertion
        for (unsigned k = i; k > 0 && values.count(order[k]) > values.count(order[k - 1]); --k) {
            std::swap(order[k], order[k - 1]);
        }
    }
    text << ",\"" << name << "\":[";
    for (unsigned i = 0; i < 4 && values.count(order[i]) > 0; ++i) {
        text << (i > 0 ? "," : "") << "[" << values.value(order[i]) << "," << values.count(order[i]) << "]";
    }
    text << "]";
}

bool has_calls(const Record& record) noexcept {
    std::uint64_t calls = record.read.calls + record.write.calls;
    for (const std::uint64_t count : record.calls) {
        calls += count;
    }
    return calls > 0;
}

void append_file_line(Text& text, Record& record, const TickScale& scale) noexcept {
    if (!record.lock.try_lock(1'000'000'000)) {
        return;
    }
    if (!has_calls(record)) {
        record.lock.unlock();
        return;
    }
    text << "{\"type\":\"file\",\"number\":" << std::uint64_t{record.number} << ",\"path\":";
    text.json(record.path) << ",\"size_bytes\":" << record.largest_open
                           << ",\"block_bytes\":" << std::uint64_t{record.block} << ",\"calls\":{";
    const char* comma = "";
    for (unsigned i = 0; i < static_cast<unsigned>(Kind::count); ++i) {
        const auto kind = static_cast<Kind>(i);
        const std::uint64_t calls = kind == Kind::Read    ? record.read.calls
                                    : kind == Kind::Write ? record.write.calls
                                                          : record.calls[i];
        if (calls > 0) {
            text << comma << "\"" << kind_names[i] << "\":" << calls;
            comma = ",";
        }
    }
    text << "},\"meta_s\":";
    text.seconds(scale.ticks_to_ns(record.metadata_ticks))
        << ",\"switches\":" << record.switches << ",\"file_unaligned\":" << record.file_unaligned
        << ",\"memory_unaligned\":" << record.memory_unaligned;
    append_access_counts(text, "read", record.read, scale);
    append_access_counts(text, "write", record.write, scale);
    append_frequent_values(text, "common_sizes", record.sizes);
    append_frequent_values(text, "common_strides", record.strides);
    text << "}\n";
    record.lock.unlock();
}

/// Events are arrays, not objects, so that a file with a million of them stays small enough to open.
void append_event_lines(Text& text, const TickScale& scale) noexcept {
    const std::uint64_t event_count =
        std::min<std::uint64_t>(state.events_seen.load(std::memory_order_relaxed), state.max_events);
    constexpr std::uint64_t on_a_line = 512;
    for (std::uint64_t offset = 0; offset < event_count; offset += on_a_line) {
        text << "{\"type\":\"events\",\"columns\":[\"t_ns\",\"ns\",\"file\",\"op\",\"offset\",\"bytes\"],\"rows\":[";
        for (std::uint64_t i = offset; i < std::min(offset + on_a_line, event_count); ++i) {
            const CallEvent& event = state.events[i];
            text << (i > offset ? ",[" : "[")
                 << scale.ticks_to_ns(event.began - std::min(event.began, state.began_ticks)) << ","
                 << scale.ticks_to_ns(event.ticks) << "," << std::uint64_t{event.file} << ",\""
                 << kind_names[event.kind] << "\"," << event.offset << "," << event.bytes << "]";
        }
        text << "]}\n";
    }
}

}  // namespace

void write_trace() noexcept {
    bool has_any_calls = false;
    for (std::uint32_t i = 0; i < state.records.load(std::memory_order_acquire); ++i) {
        has_any_calls |= has_calls(*state.all_records[i]);
    }
    if (!has_any_calls) {
        return;  // a job starts many small programs that touch no file
    }
    const TickScale scale = measure_tick_rate();
    struct utsname machine {};
    raw::call(SYS_uname, raw::pointer_to_number(&machine));
    Text name;
    Text final_name;
    name << state.folder << "/" << machine.nodename << "-" << std::int64_t{raw::call(SYS_getpid)};
    // A program that calls exec() keeps its process id, so the file name also has the start time.
    name << "-" << state.began_wall_ns / 1000;
    final_name.add(name.data(), name.length()) << ".ndjson" << '\0';
    name << ".part" << '\0';
    const long fd = system::open_own_file(name.data(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (fd < 0) {
        return;
    }
    Text text(static_cast<int>(fd));
    append_process_line(text, scale);
    for (std::uint32_t i = 0; i < state.records.load(std::memory_order_acquire); ++i) {
        append_file_line(text, *state.all_records[i], scale);
    }
    append_event_lines(text, scale);
    text << "{\"type\":\"end\"}\n";
    const bool good = text.flush();
    raw::call(SYS_close, fd);
    if (good) {  // so that readers see complete traces only
        raw::call(SYS_renameat2, AT_FDCWD, raw::pointer_to_number(name.data()), AT_FDCWD,
                  raw::pointer_to_number(final_name.data()), 0);
    }
}

}  // namespace sonde::trace
