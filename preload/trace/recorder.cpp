// SPDX-License-Identifier: Apache-2.0
#include "trace/record.hpp"

#include "settings/glob.hpp"
#include "system/hash.hpp"
#include "system/memory.hpp"
#include "system/text.hpp"
#include "system/transfer_size_class.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <algorithm>
#include <cerrno>
#include <iterator>

namespace sonde::trace {

constinit std::atomic<OpenDescription*>* table = nullptr;
constinit TraceState state;

namespace {

constinit system::Slab<OpenDescription> handles;
constinit std::atomic<int> highest{0};

Record*& compute_file_bucket(std::uint64_t hash) noexcept {
    return state.record_buckets[(hash >> 32U) % TraceState::buckets];
}

/// Reads the absolute path of an open descriptor, or the path that the program opened.
void read_file_name(int fd, const char* given_path, char* into, std::size_t room) noexcept {
    system::Text link;
    link << "/proc/self/fd/" << fd << '\0';
    const long length = raw::call(SYS_readlinkat, AT_FDCWD, raw::pointer_to_number(link.data()),
                                  raw::pointer_to_number(into), static_cast<long>(room - 1));
    if (length > 0) {
        into[length] = 0;
        return;
    }
    const std::size_t bytes = std::min(std::strlen(given_path), room - 1);
    std::memcpy(into, given_path, bytes);
    into[bytes] = 0;
}

Record* make_record(const char* path, std::uint64_t hash) noexcept {
    const std::uint32_t number = state.records.load(std::memory_order_relaxed);
    if (number == TraceState::max_records) {
        ++state.unrecorded_opens;
        return nullptr;
    }
    static constexpr std::size_t at_once = 32;
    static Record* fresh = nullptr;
    static std::size_t remaining = 0;
    if (remaining == 0) {
        fresh = static_cast<Record*>(system::map_bytes(sizeof(Record) * at_once));
        remaining = fresh != nullptr ? at_once : 0;
    }
    if (remaining == 0) {
        ++state.unrecorded_opens;
        return nullptr;
    }
    // cppcheck-suppress legacyUninitvar  ; it is made on this line
    Record* record = new (fresh++) Record{};
    --remaining;
    record->hash = hash;
    record->number = number;
    std::memcpy(record->path, path, std::strlen(path) + 1);
    Record*& bucket = compute_file_bucket(hash);
    record->in_bucket = bucket;
    bucket = record;
    state.all_records[number] = record;
    state.records.store(number + 1, std::memory_order_release);
    return record;
}

Record* find_or_make_record(int fd, const char* given_path) noexcept {
    char path[sizeof(Record::path)];
    read_file_name(fd, given_path, path, sizeof(path));
    if (settings::is_system_path(path)) {
        return nullptr;  // libraries, devices, the kernel's tables: not what a trace is for
    }
    const std::uint64_t hash = system::compute_hash(path);
    system::LockGuard lock_guard(state.lock);
    for (Record* record = compute_file_bucket(hash); record != nullptr; record = record->in_bucket) {
        if (record->hash == hash && std::strcmp(record->path, path) == 0) {
            return record;
        }
    }
    return make_record(path, hash);
}

void store_event(const Record& record, Kind kind, std::uint64_t began, std::uint64_t ended, std::int64_t offset,
                 std::int64_t bytes) noexcept {
    if (state.max_events == 0) {
        return;
    }
    const std::uint64_t index = state.events_seen.fetch_add(1, std::memory_order_relaxed);
    if (index < state.max_events) {
        const std::uint64_t length = ended - began;
        CallEvent& event = state.events[index];
        event.ticks = length < ~std::uint32_t{0} ? static_cast<std::uint32_t>(length) : ~std::uint32_t{0};
        event.file = record.number & 0xFFFFFFU;
        event.kind = static_cast<std::uint8_t>(kind);
        event.offset = offset;
        event.bytes = bytes;
        event.began = began;
    }
}

OpenDescription* get_handle(int fd) noexcept {
    return table[fd].load(std::memory_order_acquire);
}

void count_metadata_call(Record& record, Kind kind, std::uint64_t began, std::uint64_t ended) noexcept {
    ++record.calls[static_cast<unsigned>(kind)];
    record.metadata_ticks += ended - began;
}

}  // namespace

int get_highest_traced_descriptor() noexcept {
    return table != nullptr ? highest.load(std::memory_order_relaxed) : 0;
}

void start_tracing(const char* folder, std::size_t events) noexcept {
    state.folder = folder;
    state.record_buckets = static_cast<Record**>(system::map_bytes(TraceState::buckets * sizeof(Record*)));
    state.all_records = static_cast<Record**>(system::map_bytes(TraceState::max_records * sizeof(Record*), true));
    state.max_events = std::min<std::size_t>(events, 1U << 24U);
    state.events = state.max_events > 0
                       ? static_cast<CallEvent*>(system::map_bytes(state.max_events * sizeof(CallEvent), true))
                       : nullptr;
    state.max_events = state.events != nullptr ? state.max_events : 0;
    state.began_wall_ns = system::clock_ns(CLOCK_REALTIME);
    state.began_ns = system::now_ns();
    state.began_ticks = system::ticks();
    auto* new_table =
        static_cast<std::atomic<OpenDescription*>*>(system::map_bytes(sizeof(*table) * max_descriptors, true));
    if (state.record_buckets != nullptr && state.all_records != nullptr) {
        table = new_table;
    }
}

void record_open(int fd, int flags, const char* path, std::uint64_t began) noexcept {
    const system::Critical critical;
    struct stat status {};
    const int saved_errno = errno;
    if (static_cast<unsigned>(fd) >= max_descriptors || (flags & O_PATH) != 0 ||
        raw::call(SYS_fstat, fd, raw::pointer_to_number(&status)) != 0 || !S_ISREG(status.st_mode)) {
        return;
    }
    Record* record = find_or_make_record(fd, path != nullptr ? path : "");
    OpenDescription* handle = record != nullptr ? handles.allocate() : nullptr;
    if (handle == nullptr) {
        return;
    }
    handle->record = record;
    handle->offset = 0;
    handle->references = 1;
    const std::uint64_t ended = system::ticks();
    record->lock.lock();
    count_metadata_call(*record, Kind::Open, began, ended);
    record->flags |= flags & O_ACCMODE;
    record->largest_open = std::max<std::int64_t>(record->largest_open, status.st_size);
    record->block = static_cast<std::uint32_t>(status.st_blksize);
    const bool power = record->block != 0 && (record->block & (record->block - 1)) == 0;
    record->block_mask = power ? record->block - 1 : 4095;
    record->first_open = record->first_open == 0 ? began : record->first_open;
    record->lock.unlock();
    store_event(*record, Kind::Open, began, ended, 0, 0);
    int previous_highest = highest.load(std::memory_order_relaxed);
    while (fd > previous_highest && !highest.compare_exchange_weak(previous_highest, fd, std::memory_order_relaxed)) {
    }
    table[fd].store(handle, std::memory_order_release);
    errno = saved_errno;
}

void record_close(int fd, std::uint64_t began) noexcept {
    const system::Critical critical;
    OpenDescription* handle = table[fd].exchange(nullptr, std::memory_order_acq_rel);
    if (handle == nullptr) {
        return;
    }
    Record& record = *handle->record;
    const std::uint64_t ended = system::ticks();
    record.lock.lock();
    count_metadata_call(record, Kind::Close, began, ended);
    const bool last = --handle->references == 0;
    record.lock.unlock();
    store_event(record, Kind::Close, began, ended, 0, 0);
    if (last) {
        handles.deallocate(handle);
    }
}

void record_duplicate(int fd, int duplicate) noexcept {
    const system::Critical critical;
    OpenDescription* handle = get_handle(fd);
    if (handle != nullptr && static_cast<unsigned>(duplicate) < max_descriptors) {
        system::LockGuard lock_guard(handle->record->lock);
        ++handle->references;
        table[duplicate].store(handle, std::memory_order_release);
        int previous_highest = highest.load(std::memory_order_relaxed);
        while (duplicate > previous_highest &&
               !highest.compare_exchange_weak(previous_highest, duplicate, std::memory_order_relaxed)) {
        }
    }
}

void record_transfer(int fd, Kind kind, std::size_t requested, ssize_t result, std::int64_t offset, const void* memory,
                     std::uint64_t began) noexcept {
    const system::Critical critical;
    const std::uint64_t ended = system::ticks();
    OpenDescription* handle = get_handle(fd);
    if (handle == nullptr) {
        return;
    }
    Record& record = *handle->record;
    const std::uint64_t spent = ended - began;
    record.lock.lock();
    AccessCounts& counts = kind == Kind::Read ? record.read : record.write;
    const std::int64_t start = offset == current_offset ? handle->offset : offset;
    const std::int64_t bytes = result > 0 ? result : 0;
    const std::int64_t end = start + bytes;
    if (offset == current_offset) {
        handle->offset = end;
    }
    ++counts.calls;
    counts.ticks += spent;
    counts.slowest = std::max(counts.slowest, spent);
    counts.first = counts.first == 0 ? began : counts.first;
    counts.last = ended;
    counts.bytes += static_cast<std::uint64_t>(bytes);
    counts.highest_offset = std::max(counts.highest_offset, end - 1);
    counts.errors += result < 0 ? 1 : 0;
    counts.short_transfers += result >= 0 && static_cast<std::size_t>(result) < requested ? 1 : 0;
    ++counts.sizes[system::find_transfer_size_class(static_cast<std::uint64_t>(bytes))];
    if (record.has_moved_data) {
        counts.consecutive += start == record.last_end ? 1 : 0;
        counts.sequential += start >= record.last_end ? 1 : 0;
        record.switches += record.last_kind != kind ? 1 : 0;
        record.strides.add(start - record.last_begin);
    }
    record.sizes.add(bytes);
    record.file_unaligned += (start & record.block_mask) != 0 ? 1 : 0;
    record.memory_unaligned += reinterpret_cast<std::uintptr_t>(memory) % 8 != 0 ? 1 : 0;
    record.has_moved_data = true;
    record.last_kind = kind;
    record.last_begin = start;
    record.last_end = end;
    record.lock.unlock();
    store_event(record, kind, began, ended, start, result);
}

void record_seek(int fd, std::int64_t result, std::uint64_t began) noexcept {
    const system::Critical critical;
    const std::uint64_t ended = system::ticks();
    if (OpenDescription* handle = get_handle(fd)) {
        Record& record = *handle->record;
        record.lock.lock();
        count_metadata_call(record, Kind::Seek, began, ended);
        handle->offset = result >= 0 ? result : handle->offset;
        record.lock.unlock();
        store_event(record, Kind::Seek, began, ended, result, 0);
    }
}

void record_call(int fd, Kind kind, std::uint64_t began) noexcept {
    const system::Critical critical;
    const std::uint64_t ended = system::ticks();
    if (OpenDescription* handle = get_handle(fd)) {
        Record& record = *handle->record;
        record.lock.lock();
        count_metadata_call(record, kind, began, ended);
        record.lock.unlock();
        store_event(record, kind, began, ended, 0, 0);
    }
}

void record_named_call(Kind kind, std::uint64_t began) noexcept {
    PathCallTotals& counted = state.path_calls[static_cast<unsigned>(kind)];
    counted.calls.fetch_add(1, std::memory_order_relaxed);
    counted.ticks.fetch_add(system::ticks() - began, std::memory_order_relaxed);
}

void restart_trace_in_child() noexcept {
    // Resets all counters in a child after fork(), which writes its own trace.
    handles.reset_lock();
    state.lock.reset();
    for (std::uint32_t i = 0; i < state.records.load(std::memory_order_relaxed); ++i) {
        Record& record = *state.all_records[i];
        record.lock.reset();
        record.read = {};
        record.write = {};
        std::fill(std::begin(record.calls), std::end(record.calls), 0);
        record.metadata_ticks = record.switches = record.file_unaligned = record.memory_unaligned = 0;
        record.sizes = {};
        record.strides = {};
    }
    for (PathCallTotals& counts : state.path_calls) {
        counts.calls.store(0, std::memory_order_relaxed);
        counts.ticks.store(0, std::memory_order_relaxed);
    }
    state.events_seen.store(0, std::memory_order_relaxed);
    state.began_wall_ns = system::clock_ns(CLOCK_REALTIME);
    state.began_ns = system::now_ns();
    state.began_ticks = system::ticks();
}

}  // namespace sonde::trace
