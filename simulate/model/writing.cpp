// SPDX-License-Identifier: Apache-2.0
// Direct calls, and how the client's cache takes writes: a stream reserves room for a piece (up to the end of a stripe
// or of the largest request, as Lustre's osc_extent does), fills it call by call, and a full piece is sent.
#include "model/core.hpp"

#include <algorithm>

namespace sonde::simulate {

/// Streams that have written to a file since they opened it: what its targets see as its writers.
void Core::count_writer(Stream& stream, FileId file) {
    if (stream.writes != file) {
        end_writing(stream);
        stream.writes = file;
        ++files[file].writers;
    }
}

void Core::end_writing(Stream& stream) {
    if (stream.writes != none) {
        File& before = files[stream.writes];
        before.writers -= before.writers > 0 ? 1 : 0;
        stream.writes = none;
    }
}

/// Past the cache, or durable when it returns: all requests at once, done when the last one is.
void Core::begin_direct(std::uint32_t call) {
    const Operation operation = calls[call].operation;
    Stream& stream = streams[operation.stream];
    File& file = files[operation.file];
    const bool writing = operation.call == Call::write;
    const std::uint64_t end =
        writing ? operation.offset + operation.length : std::min(operation.offset + operation.length, file.size);
    if (writing) {
        count_writer(stream, operation.file);
        file.size = std::max(file.size, end);
    }
    if (operation.offset >= end) {
        return finish(call, now);
    }
    // Counted before the first is sent: one that is answered at once must not end the call.
    std::vector<std::uint32_t> made;
    // A driver cuts a call after its largest transfer, wherever that is; a Lustre client where requests have their
    // borders.
    constexpr std::uint64_t largest_transfer = std::uint64_t{16} << 20U;
    const std::uint64_t borders = site.fs.local ? file.layout.size : clients[stream.client].site.rpc_size;
    for (std::uint64_t at = operation.offset; at < end;) {
        const Where where = place_of(file, at, borders);
        const std::uint64_t most = site.fs.local ? largest_transfer : where.to_border;
        const std::uint64_t length = std::min({end - at, where.to_border, most});
        const std::uint32_t request =
            make_request(stream, operation.stream, where, operation.file, at, length, writing, For::call);
        requests[request].call = call;
        requests[request].lengthens = writing && lengthens(file, at + length);
        made.push_back(request);
        at += length;
    }
    calls[call].requests = static_cast<std::uint32_t>(made.size());
    for (const std::uint32_t request : made) {
        enqueue(request);
    }
}

/// Room for what may come up to the next border. False when the client has none.
bool Core::open_piece(std::uint32_t call, FileId file_id, std::uint64_t offset) {
    Stream& stream = streams[calls[call].operation.stream];
    Client& client = clients[stream.client];
    const File& file = files[file_id];
    const Where where = place_of(file, offset, client.site.rpc_size);
    if (client.channels.empty()) {
        client.channels.resize(targets.size());
    }
    Channel& channel = client.channels[where.target];
    const std::uint64_t room = where.to_border;
    const std::uint64_t limit = client.site.dirty_limit;
    const std::uint64_t of_target = client.site.dirty_per_target;
    // One piece may always be there, however small the limits are.
    const bool full = of_target > 0 && channel.dirty > 0 && channel.dirty + room > of_target;
    calls[call].full = full ? where.target : none;
    if (full || (limit > 0 && client.dirty > 0 && client.dirty + room > limit)) {
        return false;
    }
    count_writer(stream, file_id);
    client.dirty += room;
    channel.dirty += room;
    stream.piece = {true, file_id, where.target, offset, offset, offset + room, where.object_offset};
    return true;
}

/// Takes bytes of the call into pieces. False when it has to wait for room; then it is not finished.
bool Core::continue_write(std::uint32_t call) {
    const Operation operation = calls[call].operation;
    const std::uint64_t end = operation.offset + operation.length;
    Stream& stream = streams[operation.stream];
    while (calls[call].done < operation.length) {
        const std::uint64_t at = operation.offset + calls[call].done;
        if (stream.piece.open && (stream.piece.file != operation.file || stream.piece.file_at != at)) {
            seal(operation.stream);
        }
        if (!stream.piece.open && !open_piece(call, operation.file, at)) {
            return false;
        }
        const std::uint64_t part = std::min(end, stream.piece.file_end) - at;
        stream.piece.file_at += part;
        calls[call].done += part;
        if (stream.piece.file_at == stream.piece.file_end) {
            seal(operation.stream);
        }
    }
    File& file = files[operation.file];
    file.size = std::max(file.size, end);
    finish(call, now);
    return true;
}

/// Until something is written back. If nothing is under way, all room is reserved by pieces that are not full: these
/// go.
void Core::wait_for_room(std::uint32_t call) {
    Client& client = clients[streams[calls[call].operation.stream].client];
    client.writers.push_back(call);
    if (client.flushing == 0) {
        for (const StreamId id : client.streams) {
            seal(id);
        }
    }
}

/// The stream's piece goes to its target as it is; room that it did not use is free again.
void Core::seal(StreamId id) {
    Stream& stream = streams[id];
    if (!stream.piece.open) {
        return;
    }
    const Piece piece = stream.piece;
    stream.piece.open = false;
    Client& client = clients[stream.client];
    const std::uint64_t unused = piece.file_end - piece.file_at;
    client.dirty -= unused;
    client.channels[piece.target].dirty -= unused;
    const std::uint64_t length = piece.file_at - piece.file_from;
    if (length == 0) {
        return;
    }
    client.pages.insert(piece.file, piece.file_from, piece.file_at);
    const std::uint32_t request = make_request(stream, id, {piece.target, piece.object_from, 0}, piece.file,
                                               piece.file_from, length, true, For::write_behind);
    requests[request].lengthens = lengthens(files[piece.file], piece.file_at);
    ++files[piece.file].pending[stream.client];
    ++client.flushing;
    enqueue(request);
}

void Core::written_back(const Request& request) {
    Client& client = clients[request.client];
    --client.flushing;
    client.dirty -= request.length;
    client.channels[request.target].dirty -= request.length;
    File& file = files[request.file];
    if (std::uint32_t& pending = file.pending[request.client]; --pending == 0) {
        file.pending.erase(request.client);
        std::vector<std::uint32_t> ready;
        std::erase_if(file.syncing, [&](std::uint32_t call) {
            const bool mine = streams[calls[call].operation.stream].client == request.client;
            if (mine) {
                ready.push_back(call);
            }
            return mine;
        });
        for (const std::uint32_t call : ready) {
            finish(call, now);
        }
    }
    // Whoever waits for room, in the order in which they began to wait; those of other targets may pass.
    std::deque<std::uint32_t> waiting;
    waiting.swap(client.writers);
    while (!waiting.empty()) {
        const std::uint32_t call = waiting.front();
        waiting.pop_front();
        const std::uint32_t full = calls[call].full;
        const bool still = full != none && full != request.target && client.channels[full].dirty > 0;
        if (still || !continue_write(call)) {
            wait_for_room(call);
        }
    }
}

/// Durable: what all streams of this client have written to the file is at its targets.
void Core::begin_fsync(std::uint32_t call) {
    const Operation operation = calls[call].operation;
    const std::uint32_t client = streams[operation.stream].client;
    for (const StreamId id : clients[client].streams) {
        if (streams[id].piece.open && streams[id].piece.file == operation.file) {
            seal(id);
        }
    }
    File& file = files[operation.file];
    if (file.pending.contains(client)) {
        file.syncing.push_back(call);
    } else {
        finish(call, now);
    }
}

}  // namespace sonde::simulate
