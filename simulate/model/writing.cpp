// SPDX-License-Identifier: Apache-2.0
// Direct calls, and buffered writes: a stream reserves dirty room for a piece (up to the end of a stripe or of the
// largest request, as Lustre's osc_extent does), fills it call by call, and sends it when it is full.
#include "model/client_cache.hpp"

#include <algorithm>
#include <cerrno>

namespace sonde::simulate {

/// Counts a stream among the writers of a file until it closes the file.
void ClientCache::register_writer(ClientStream& stream, FileId file) {
    if (stream.written_file != file) {
        unregister_writer(stream);
        stream.written_file = file;
        ++files_[file].writer_count;
    }
}

void ClientCache::unregister_writer(ClientStream& stream) {
    if (stream.written_file != no_index) {
        FileState& file = files_[stream.written_file];
        file.writer_count -= file.writer_count > 0 ? 1 : 0;
        stream.written_file = no_index;
    }
}

/// Direct and synchronous calls: sends all requests at once. The call is done when the last request is.
void ClientCache::begin_uncached_call(std::uint32_t call) {
    const ModelOperation operation = calls_[call].operation;
    ClientStream& stream = clients_.stream(operation.stream);
    FileState& file = files_[operation.file];
    const bool is_write = operation.kind == ModelCallKind::write;
    const std::uint64_t end =
        is_write ? operation.offset + operation.length : std::min(operation.offset + operation.length, file.size);
    if (is_write) {
        if (!files_.reserve_space(operation.file, end)) {
            return calls_.fail(call, timeline_.now(), ENOSPC);
        }
        register_writer(stream, operation.file);
        file.size = std::max(file.size, end);
    }
    if (operation.offset >= end) {
        return calls_.finish(call, timeline_.now());
    }
    // All requests are counted before the first is sent, since a request that completes at once must not end the call.
    std::vector<std::uint32_t> new_requests;
    // A local driver splits a call after its largest transfer; a Lustre client splits it at request borders.
    constexpr std::uint64_t largest_transfer = std::uint64_t{16} << 20U;
    const std::uint64_t borders =
        site_.file_system.is_local ? file.layout.size : clients_[stream.client].description.rpc_size;
    for (std::uint64_t offset = operation.offset; offset < end;) {
        const StripeLocation location = files_.locate_stripe(file, offset, borders);
        const std::uint64_t longest = site_.file_system.is_local ? largest_transfer : location.bytes_to_border;
        const std::uint64_t length = std::min({end - offset, location.bytes_to_border, longest});
        const std::uint32_t request = requests_.create(operation.stream, location, operation.file, offset, length,
                                                       is_write, RequestPurpose::call);
        requests_[request].call = call;
        requests_[request].extends_file = is_write && file.extend_allocation(offset + length);
        new_requests.push_back(request);
        offset += length;
    }
    calls_[call].pending_requests = static_cast<std::uint32_t>(new_requests.size());
    for (const std::uint32_t request : new_requests) {
        requests_.enqueue(request);
    }
}

/// Reserves dirty room up to the next border. False when the client has none.
bool ClientCache::reserve_piece(std::uint32_t call, FileId file_id, std::uint64_t offset) {
    ClientStream& stream = clients_.stream(calls_[call].operation.stream);
    Client& client = clients_[stream.client];
    const FileState& file = files_[file_id];
    const StripeLocation location = files_.locate_stripe(file, offset, client.description.rpc_size);
    TargetQueue& target_queue = client.target_queue(location.target, site_.targets.size());
    const std::uint64_t room = location.bytes_to_border;
    const std::uint64_t limit = client.description.dirty_limit_bytes;
    const std::uint64_t target_limit = client.description.dirty_bytes_per_target;
    // Limits smaller than a piece still allow one piece.
    const bool is_target_full =
        target_limit > 0 && target_queue.dirty_bytes > 0 && target_queue.dirty_bytes + room > target_limit;
    calls_[call].full_target = is_target_full ? location.target : no_index;
    if (is_target_full || (limit > 0 && client.dirty_bytes > 0 && client.dirty_bytes + room > limit)) {
        return false;
    }
    register_writer(stream, file_id);
    client.dirty_bytes += room;
    target_queue.dirty_bytes += room;
    stream.piece = {true, file_id, location.target, offset, offset, offset + room, location.object_offset};
    return true;
}

/// Reserves space for a call up to the end of the piece that its byte at `offset` begins, so that later calls of the
/// piece need no check.
bool ClientCache::has_space_for_piece(const ModelOperation& operation, std::uint64_t offset) {
    const Client& client = clients_.client_of(operation.stream);
    const StripeLocation location = files_.locate_stripe(files_[operation.file], offset, client.description.rpc_size);
    const std::uint64_t end = operation.offset + operation.length;
    return files_.reserve_space(operation.file, std::max(end, offset + location.bytes_to_border));
}

void ClientCache::begin_write(std::uint32_t call) {
    const ModelOperation& operation = calls_[call].operation;
    if (operation.direct || operation.sync) {
        begin_uncached_call(call);
    } else if (!buffer_write(call)) {
        wait_for_dirty_room(call);
    }
}

/// Buffers the bytes of a call in pieces and finishes the call, with ENOSPC when a target is full. False when it must
/// wait for dirty room.
bool ClientCache::buffer_write(std::uint32_t call) {
    const ModelOperation operation = calls_[call].operation;
    const std::uint64_t end = operation.offset + operation.length;
    ClientStream& stream = clients_.stream(operation.stream);
    while (calls_[call].buffered_bytes < operation.length) {
        const std::uint64_t offset = operation.offset + calls_[call].buffered_bytes;
        if (stream.piece.is_open && (stream.piece.file != operation.file || stream.piece.written_until != offset)) {
            write_back_piece(operation.stream);
        }
        if (!stream.piece.is_open && !has_space_for_piece(operation, offset)) {
            calls_.fail(call, timeline_.now(), ENOSPC);
            return true;
        }
        if (!stream.piece.is_open && !reserve_piece(call, operation.file, offset)) {
            return false;
        }
        const std::uint64_t part = std::min(end, stream.piece.reserved_until) - offset;
        stream.piece.written_until += part;
        calls_[call].buffered_bytes += part;
        if (stream.piece.written_until == stream.piece.reserved_until) {
            write_back_piece(operation.stream);
        }
    }
    FileState& file = files_[operation.file];
    file.size = std::max(file.size, end);
    calls_.finish(call, timeline_.now());
    return true;
}

/// Queues a call until data is written back. With no write-back in flight, partial pieces occupy all dirty room: they
/// are sent.
void ClientCache::wait_for_dirty_room(std::uint32_t call) {
    Client& client = clients_.client_of(calls_[call].operation.stream);
    client.waiting_writers.push_back(call);
    if (client.write_back_count == 0) {
        for (const StreamId id : client.streams) {
            write_back_piece(id);
        }
    }
}

void ClientCache::write_back_piece(StreamId id) {
    ClientStream& stream = clients_.stream(id);
    if (!stream.piece.is_open) {
        return;
    }
    const WritePiece piece = stream.piece;
    stream.piece.is_open = false;
    Client& client = clients_[stream.client];
    const std::uint64_t unused = piece.reserved_until - piece.written_until;
    client.dirty_bytes -= unused;
    client.target_queues[piece.target].dirty_bytes -= unused;
    const std::uint64_t length = piece.written_until - piece.file_from;
    if (length == 0) {
        return;
    }
    client.pages.insert(piece.file, piece.file_from, piece.written_until, true);
    const std::uint32_t request = requests_.create(id, {piece.target, piece.object_offset, 0}, piece.file,
                                                   piece.file_from, length, true, RequestPurpose::write_behind);
    requests_[request].extends_file = files_[piece.file].extend_allocation(piece.written_until);
    ++files_[piece.file].pending_write_backs[stream.client];
    ++client.write_back_count;
    requests_.enqueue(request);
}

/// Finishes the fsync calls of a client that wait for the file.
void ClientCache::finish_fsyncs(FileState& file, std::uint32_t client) {
    std::vector<std::uint32_t> ready;
    std::erase_if(file.waiting_fsyncs, [&](std::uint32_t call) {
        const bool is_of_client = clients_.stream(calls_[call].operation.stream).client == client;
        if (is_of_client) {
            ready.push_back(call);
        }
        return is_of_client;
    });
    for (const std::uint32_t call : ready) {
        calls_.finish(call, timeline_.now());
    }
}

void ClientCache::finish_write_back(const StorageRequest& request) {
    Client& client = clients_[request.client];
    --client.write_back_count;
    client.dirty_bytes -= request.length;
    client.target_queues[request.target].dirty_bytes -= request.length;
    FileState& file = files_[request.file];
    if (std::uint32_t& pending = file.pending_write_backs[request.client]; --pending == 0) {
        file.pending_write_backs.erase(request.client);
        finish_fsyncs(file, request.client);
    }
    // Waiting writers continue in the order of arrival; a writer that waits for another target stays in the queue.
    std::deque<std::uint32_t> waiting;
    waiting.swap(client.waiting_writers);
    while (!waiting.empty()) {
        const std::uint32_t call = waiting.front();
        waiting.pop_front();
        const std::uint32_t full_target = calls_[call].full_target;
        const bool still_waits = full_target != no_index && full_target != request.target &&
                                 client.target_queues[full_target].dirty_bytes > 0;
        if (still_waits || !buffer_write(call)) {
            wait_for_dirty_room(call);
        }
    }
}

/// Sends the dirty data of the file that the streams of this client still collect, and waits until all write-backs of
/// the file by this client are done.
void ClientCache::begin_fsync(std::uint32_t call) {
    const ModelOperation operation = calls_[call].operation;
    const std::uint32_t client = clients_.stream(operation.stream).client;
    for (const StreamId id : clients_[client].streams) {
        if (clients_.stream(id).piece.is_open && clients_.stream(id).piece.file == operation.file) {
            write_back_piece(id);
        }
    }
    FileState& file = files_[operation.file];
    if (file.pending_write_backs.contains(client)) {
        file.waiting_fsyncs.push_back(call);
    } else {
        calls_.finish(call, timeline_.now());
    }
}

}  // namespace sonde::simulate
