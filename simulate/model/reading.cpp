// SPDX-License-Identifier: Apache-2.0
// Buffered reads: from the client's cache, by read-ahead of a sequential stream, or by requests for the range of the
// call.
#include "model/client_cache.hpp"

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

bool is_missing(const ClientStream& stream, std::uint64_t from, std::uint64_t until) {
    return std::any_of(stream.missing_ranges.begin(), stream.missing_ranges.end(),
                       [&](const auto& range) { return range.first < until && range.second > from; });
}

/// Bytes by which read-ahead grows first.
std::uint64_t read_ahead_unit(const Client& client) {
    return std::max<std::uint64_t>(client.description.rpc_size, page_bytes);
}

/// Bytes that read-ahead may request now. As in Lustre, all streams of a client share a total, and read-ahead pauses
/// while less than a request of it is left.
std::uint64_t read_ahead_room(const Client& client) {
    const std::uint64_t total = client.description.total_read_ahead_bytes;
    if (total == 0) {
        return ~0ULL;
    }
    const std::uint64_t room = total - std::min(total, client.read_ahead_in_flight);
    return room < std::min(read_ahead_unit(client), total) ? 0 : room;
}

}  // namespace

/// Time of a read under the client's cache lock (Lustre LU-744): each page takes longer for each page of the file that
/// a write left in the client's cache. 0 on clients without the defect.
Time ClientCache::cache_lock_time(const Client& client, const ModelOperation& operation) const {
    if (cached_page_cost_s_ <= 0) {
        return 0;
    }
    const std::uint64_t cached_pages = client.pages.count_written_bytes(operation.file) / page_bytes;
    const std::uint64_t read_pages = (operation.length + page_bytes - 1) / page_bytes;
    return seconds_to_time(cached_page_cost_s_ * static_cast<double>(cached_pages) * static_cast<double>(read_pages));
}

void ClientCache::begin_read(std::uint32_t call) {
    if (calls_[call].operation.direct) {
        begin_uncached_call(call);
    } else {
        begin_buffered_read(call);
    }
}

void ClientCache::begin_buffered_read(std::uint32_t call) {
    const ModelOperation operation = calls_[call].operation;
    ClientStream& stream = clients_.stream(operation.stream);
    Client& client = clients_[stream.client];
    if (!calls_[call].has_paid_cache_lock) {
        calls_[call].has_paid_cache_lock = true;
        if (const Time extra = cache_lock_time(client, operation); extra > 0) {
            timeline_.push(client.cache_lock.reserve(timeline_.now(), extra).end, EventKind::call_begins, call);
            return;
        }
    }
    const std::uint64_t size = files_[operation.file].size;
    const std::uint64_t from = operation.offset;
    const std::uint64_t until = std::min(from + operation.length, size);
    if (from >= until) {
        return calls_.finish(call, timeline_.now());
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
    const std::uint64_t find_end_of_cached_bytes = client.pages.find_end_of_cached_bytes(operation.file, from);
    if (find_end_of_cached_bytes >= until && stream.requested_until < find_end_of_cached_bytes) {
        stream.requested_until = find_end_of_cached_bytes;
    }
    const std::uint64_t request_until =
        is_sequential || from == 0 ? plan_read_ahead(stream, client, operation, until) : until;
    if (request_until > stream.requested_until) {
        const std::uint64_t begin = std::max(stream.requested_until, from);
        stream.requested_until = request_until;
        fetch_missing(operation.stream, begin, request_until, until);
    }
    stream.last_read_end = until;
    if (is_missing(clients_.stream(operation.stream), from, until)) {
        clients_.stream(operation.stream).waiting_reads.push_back(call);
        return;
    }
    set_ready_range(clients_.stream(operation.stream), from, until + read_ahead_unit(client));
    calls_.finish(call, timeline_.now());
}

/// End offset of the requests of a sequential read. The read-ahead window doubles when half of it was read. On clients
/// with a total (Lustre) it moves and grows by one request at a time instead, as far as the other streams leave room.
std::uint64_t ClientCache::plan_read_ahead(ClientStream& stream, const Client& client, const ModelOperation& operation,
                                           std::uint64_t until) const {
    const bool begins = operation.offset == 0 && stream.read_ahead_window == 0 && operation.length > 0;
    const bool continues = operation.offset > 0;
    const std::uint64_t limit = client.description.read_ahead_bytes;
    const std::uint64_t unit = std::min(read_ahead_unit(client), limit), window = stream.read_ahead_window;
    const bool moves = client.description.total_read_ahead_bytes > 0;
    const std::uint64_t margin = moves ? window - std::min(window, unit) : window / 2;
    if ((!begins && !continues) || limit == 0 || stream.requested_until > until + margin) {
        return until;
    }
    stream.read_ahead_window = std::min(moves ? window + unit : std::max(2 * window, unit), limit);
    const std::uint64_t begin = std::max(stream.requested_until, until);
    const std::uint64_t ahead = until + stream.read_ahead_window - std::min(begin, until + stream.read_ahead_window);
    return std::min(files_[operation.file].size, begin + std::min(ahead, read_ahead_room(client)));
}

/// Requests the bytes `from` … `until`-1 that are not in the cache. Those from `call_end` on are read-ahead.
void ClientCache::fetch_missing(StreamId id, std::uint64_t from, std::uint64_t until, std::uint64_t call_end) {
    const FileId file_id = clients_.stream(id).file;
    Client& client = clients_.client_of(id);
    std::vector<std::uint32_t> new_requests;
    for (std::uint64_t offset = from; offset < until;) {
        if (const std::uint64_t find_end_of_cached_bytes = client.pages.find_end_of_cached_bytes(file_id, offset);
            find_end_of_cached_bytes > offset) {
            offset = find_end_of_cached_bytes;
            continue;
        }
        const StripeLocation location = files_.locate_stripe(files_[file_id], offset, client.description.rpc_size);
        const std::uint64_t length = std::min(until - offset, location.bytes_to_border);
        new_requests.push_back(
            requests_.create(id, location, file_id, offset, length, false, RequestPurpose::read_ahead));
        const std::uint64_t ahead = offset + length - std::min(std::max(offset, call_end), offset + length);
        requests_[new_requests.back()].read_ahead_bytes = ahead;
        client.read_ahead_in_flight += ahead;
        clients_.stream(id).missing_ranges.emplace_back(offset, offset + length);
        offset += length;
    }
    for (const std::uint32_t request : new_requests) {
        requests_.enqueue(request);
    }
}

void ClientCache::finish_fetch(const StorageRequest& request) {
    Client& client = clients_[request.client];
    client.read_ahead_in_flight -= request.read_ahead_bytes;
    client.pages.insert(request.file, request.file_offset, request.file_offset + request.length);
    ClientStream& stream = clients_.stream(request.stream);
    const std::pair<std::uint64_t, std::uint64_t> range{request.file_offset, request.file_offset + request.length};
    const auto missing = std::find(stream.missing_ranges.begin(), stream.missing_ranges.end(), range);
    if (missing == stream.missing_ranges.end()) {
        return;
    }
    stream.missing_ranges.erase(missing);
    for (;;) {
        ClientStream& current = clients_.stream(request.stream);  // listeners may begin streams
        const auto ready =
            std::find_if(current.waiting_reads.begin(), current.waiting_reads.end(), [&](std::uint32_t call) {
                const ModelOperation& operation = calls_[call].operation;
                const std::uint64_t until = std::min(operation.offset + operation.length, files_[operation.file].size);
                return !is_missing(current, operation.offset, until);
            });
        if (ready == current.waiting_reads.end()) {
            return;
        }
        const std::uint32_t call = *ready;
        const ModelOperation& operation = calls_[call].operation;
        current.waiting_reads.erase(ready);
        current.ready_from = operation.offset;
        current.ready_until = std::min(operation.offset + operation.length, files_[operation.file].size);
        calls_.finish(call, timeline_.now());
    }
}

}  // namespace sonde::simulate
