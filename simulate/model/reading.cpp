// SPDX-License-Identifier: Apache-2.0
// Buffered reads: from the client's cache, by read-ahead of a sequential stream, or by requests for the range of the
// call.
#include "model/core.hpp"

#include <algorithm>

namespace sonde::simulate {
namespace {

/// Sets the range from `from` to at most `limit` that reads of the stream find in the cache.
void set_ready_range(ClientStream& stream, std::uint64_t from, std::uint64_t limit) {
    stream.ready_from = from;
    stream.ready_until = std::min(stream.requested_until, limit);
    for (const auto& range : stream.missing_ranges) {
        stream.ready_until = range.second > from ? std::min(stream.ready_until, range.first) : stream.ready_until;
    }
}

}  // namespace

/// Time of a read under the client's cache lock (Lustre LU-744): each page takes longer for each page of the file that
/// the client caches. 0 on clients without the defect.
Time Core::cache_lock_time(Client& client, const ModelOperation& operation) {
    if (cached_page_cost_s <= 0) {
        return 0;
    }
    const std::uint64_t cached_pages = client.pages.cached_bytes_of(operation.file) / page_bytes;
    const std::uint64_t read_pages = (operation.length + page_bytes - 1) / page_bytes;
    return seconds_to_time(cached_page_cost_s * static_cast<double>(cached_pages) * static_cast<double>(read_pages));
}

bool Core::is_missing(const ClientStream& stream, std::uint64_t from, std::uint64_t until) const {
    return std::any_of(stream.missing_ranges.begin(), stream.missing_ranges.end(),
                       [&](const auto& range) { return range.first < until && range.second > from; });
}

void Core::begin_read(std::uint32_t call) {
    const ModelOperation operation = calls[call].operation;
    ClientStream& stream = streams[operation.stream];
    Client& client = clients[stream.client];
    if (!calls[call].has_paid_cache_lock) {
        calls[call].has_paid_cache_lock = true;
        if (const Time extra = cache_lock_time(client, operation); extra > 0) {
            push(client.cache_lock.reserve(now, extra).end, EventKind::call_begins, call);
            return;
        }
    }
    const std::uint64_t size = files[operation.file].size;
    const std::uint64_t from = operation.offset;
    const std::uint64_t until = std::min(from + operation.length, size);
    if (from >= until) {
        return finish_call(call, now);
    }
    const bool is_sequential = stream.file == operation.file && from == stream.last_read_end;
    const bool was_requested =
        stream.file == operation.file && from >= stream.requested_from && until <= stream.requested_until;
    if (!is_sequential && !was_requested) {
        // Requests in flight for the previous range still reach the cache.
        stream.read_ahead_window = 0;
        stream.requested_until = from;
    }
    stream.requested_from = from;  // earlier bytes may have been evicted
    stream.file = operation.file;
    const std::uint64_t cached_until = client.pages.cached_until(operation.file, from);
    if (cached_until >= until && stream.requested_until < cached_until) {
        stream.requested_until = cached_until;
    }
    // Read-ahead doubles its window with each sequential read, up to the limit.
    const std::uint64_t unit = std::max<std::uint64_t>(client.site.rpc_size, page_bytes);
    const bool reads_ahead =
        (is_sequential && from > 0) || (from == 0 && stream.read_ahead_window == 0 && operation.length > 0);
    std::uint64_t request_until = until;
    if (reads_ahead && client.site.read_ahead > 0 &&
        stream.requested_until < until + stream.read_ahead_window / 2 + 1) {
        stream.read_ahead_window = std::min(
            std::max(2 * stream.read_ahead_window, std::min(unit, client.site.read_ahead)), client.site.read_ahead);
        request_until = std::min(size, until + stream.read_ahead_window);
    }
    if (request_until > stream.requested_until) {
        const std::uint64_t begin = std::max(stream.requested_until, from);
        stream.requested_until = request_until;
        fetch_missing(operation.stream, begin, request_until);
    }
    stream.last_read_end = until;
    if (is_missing(streams[operation.stream], from, until)) {
        streams[operation.stream].waiting_reads.push_back(call);
        return;
    }
    set_ready_range(streams[operation.stream], from, until + unit);
    finish_call(call, now);
}

/// Requests the bytes `from` … `until`-1 that are not in the cache.
void Core::fetch_missing(StreamId id, std::uint64_t from, std::uint64_t until) {
    const FileId file_id = streams[id].file;
    Client& client = clients[streams[id].client];
    std::vector<std::uint32_t> new_requests;
    for (std::uint64_t offset = from; offset < until;) {
        if (const std::uint64_t cached_until = client.pages.cached_until(file_id, offset); cached_until > offset) {
            offset = cached_until;
            continue;
        }
        const StripeLocation location = locate_stripe(files[file_id], offset, client.site.rpc_size);
        const std::uint64_t length = std::min(until - offset, location.bytes_to_border);
        new_requests.push_back(
            create_request(streams[id], id, location, file_id, offset, length, false, RequestPurpose::read_ahead));
        streams[id].missing_ranges.emplace_back(offset, offset + length);
        offset += length;
    }
    for (const std::uint32_t request : new_requests) {
        enqueue_request(request);
    }
}

void Core::finish_fetch(const StorageRequest& request) {
    Client& client = clients[request.client];
    client.pages.insert(request.file, request.file_offset, request.file_offset + request.length);
    ClientStream& stream = streams[request.stream];
    const std::pair<std::uint64_t, std::uint64_t> range{request.file_offset, request.file_offset + request.length};
    const auto missing = std::find(stream.missing_ranges.begin(), stream.missing_ranges.end(), range);
    if (missing == stream.missing_ranges.end()) {
        return;
    }
    stream.missing_ranges.erase(missing);
    for (;;) {
        ClientStream& current = streams[request.stream];  // listeners may begin streams
        const auto ready =
            std::find_if(current.waiting_reads.begin(), current.waiting_reads.end(), [&](std::uint32_t call) {
                const ModelOperation& operation = calls[call].operation;
                const std::uint64_t until = std::min(operation.offset + operation.length, files[operation.file].size);
                return !is_missing(current, operation.offset, until);
            });
        if (ready == current.waiting_reads.end()) {
            return;
        }
        const std::uint32_t call = *ready;
        const ModelOperation& operation = calls[call].operation;
        current.waiting_reads.erase(ready);
        current.ready_from = operation.offset;
        current.ready_until = std::min(operation.offset + operation.length, files[operation.file].size);
        finish_call(call, now);
    }
}

}  // namespace sonde::simulate
