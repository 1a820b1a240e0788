// SPDX-License-Identifier: Apache-2.0
// How the client's cache serves reads: from what it holds, from what it reads ahead of a stream, or by asking for just
// what is wanted.
#include "model/core.hpp"

#include <algorithm>

namespace sonde::simulate {

/// Client caches that slow down as they fill (Lustre LU-744): reading a page takes longer for each page of the file
/// that the client already caches, under one lock of the node. Zero on sound clients.
Time Core::under_cache_lock(Client& client, const Operation& operation) {
    if (cached_page_cost_s <= 0) {
        return 0;
    }
    const std::uint64_t held = client.pages.bytes_of(operation.file) / page;
    const std::uint64_t wanted = (operation.length + page - 1) / page;
    return time_of(cached_page_cost_s * static_cast<double>(held) * static_cast<double>(wanted));
}

bool Core::waits_for(const Stream& stream, std::uint64_t from, std::uint64_t to) const {
    return std::any_of(stream.missing.begin(), stream.missing.end(),
                       [&](const auto& piece) { return piece.first < to && piece.second > from; });
}

void Core::begin_read(std::uint32_t call) {
    const Operation operation = calls[call].operation;
    Stream& stream = streams[operation.stream];
    Client& client = clients[stream.client];
    if (!calls[call].paid) {
        calls[call].paid = true;
        if (const Time extra = under_cache_lock(client, operation); extra > 0) {
            push(client.cache_lock.reserve(now, extra).end, Happens::begin, call);
            return;
        }
    }
    const std::uint64_t size = files[operation.file].size;
    const std::uint64_t from = operation.offset;
    const std::uint64_t to = std::min(from + operation.length, size);
    if (from >= to) {
        return finish(call, now);
    }
    const bool follows = stream.file == operation.file && from == stream.next;
    const bool asked = stream.file == operation.file && from >= stream.ahead_from && to <= stream.ahead_to;
    if (!follows && !asked) {
        // Somewhere else: what is under way for the old place is still taken into the cache.
        stream.window = 0;
        stream.ahead_to = from;
    }
    stream.ahead_from = from;  // what lies before it may have left the cache since
    stream.file = operation.file;
    const std::uint64_t held = client.pages.held_to(operation.file, from);
    if (held >= to && stream.ahead_to < held) {
        stream.ahead_to = held;
    }
    // Ahead of a stream that goes on, twice as far each time as before, to the limit.
    const std::uint64_t unit = std::max<std::uint64_t>(client.site.rpc_size, page);
    const bool streaming = (follows && from > 0) || (from == 0 && stream.window == 0 && operation.length > 0);
    std::uint64_t wanted = to;
    if (streaming && client.site.read_ahead > 0 && stream.ahead_to < to + stream.window / 2 + 1) {
        stream.window =
            std::min(std::max(2 * stream.window, std::min(unit, client.site.read_ahead)), client.site.read_ahead);
        wanted = std::min(size, to + stream.window);
    }
    if (wanted > stream.ahead_to) {
        const std::uint64_t begin = std::max(stream.ahead_to, from);
        stream.ahead_to = wanted;
        fetch(operation.stream, begin, wanted);
    }
    stream.next = to;
    if (waits_for(streams[operation.stream], from, to)) {
        streams[operation.stream].waiting.push_back(call);
        return;
    }
    Stream& now_ready = streams[operation.stream];
    now_ready.ready_from = from;
    now_ready.ready_to = std::min(now_ready.ahead_to, to + unit);
    for (const auto& piece : now_ready.missing) {
        now_ready.ready_to = piece.second > from ? std::min(now_ready.ready_to, piece.first) : now_ready.ready_to;
    }
    finish(call, now);
}

/// Asks for bytes `from` … `to`-1 that the cache lacks.
void Core::fetch(StreamId id, std::uint64_t from, std::uint64_t to) {
    const FileId file_id = streams[id].file;
    Client& client = clients[streams[id].client];
    std::vector<std::uint32_t> made;
    for (std::uint64_t at = from; at < to;) {
        if (const std::uint64_t held = client.pages.held_to(file_id, at); held > at) {
            at = held;
            continue;
        }
        const Where where = place_of(files[file_id], at, client.site.rpc_size);
        const std::uint64_t length = std::min(to - at, where.to_border);
        made.push_back(make_request(streams[id], id, where, file_id, at, length, false, For::read_ahead));
        streams[id].missing.emplace_back(at, at + length);
        at += length;
    }
    for (const std::uint32_t request : made) {
        enqueue(request);
    }
}

void Core::fetched(const Request& request) {
    Client& client = clients[request.client];
    client.pages.insert(request.file, request.file_offset, request.file_offset + request.length);
    Stream& stream = streams[request.stream];
    const std::pair<std::uint64_t, std::uint64_t> piece{request.file_offset, request.file_offset + request.length};
    const auto found = std::find(stream.missing.begin(), stream.missing.end(), piece);
    if (found == stream.missing.end()) {
        return;
    }
    stream.missing.erase(found);
    for (;;) {
        Stream& now_there = streams[request.stream];  // who hears of an end may begin a stream
        const auto ready = std::find_if(now_there.waiting.begin(), now_there.waiting.end(), [&](std::uint32_t call) {
            const Operation& operation = calls[call].operation;
            const std::uint64_t to = std::min(operation.offset + operation.length, files[operation.file].size);
            return !waits_for(now_there, operation.offset, to);
        });
        if (ready == now_there.waiting.end()) {
            return;
        }
        const std::uint32_t call = *ready;
        const Operation& operation = calls[call].operation;
        now_there.waiting.erase(ready);
        now_there.ready_from = operation.offset;
        now_there.ready_to = std::min(operation.offset + operation.length, files[operation.file].size);
        finish(call, now);
    }
}

}  // namespace sonde::simulate
