// SPDX-License-Identifier: Apache-2.0
#include "model/client_cache.hpp"

#include <algorithm>

namespace sonde::simulate {

ClientCache::ClientCache(const SystemModel& site, ClientTable& clients, FileTable& files, Network& network,
                         StorageServers& storage, PendingCalls& calls, Timeline& timeline, MonitoringData& monitoring)
    : site_(site),
      clients_(clients),
      files_(files),
      calls_(calls),
      timeline_(timeline),
      monitoring_(monitoring),
      requests_(site, clients, network, storage, timeline, *this),
      cached_page_cost_s_(site.file_system.cached_page_cost_s) {
    for (const ClientDescription& client : site.clients) {
        monitoring.nodes.push_back({client.id, {}, {}, {}, {}, {}});
    }
}

Time ClientCache::call_cpu_time(const Client& client, const ModelOperation& operation) const {
    Time cost = client.description.call_cost;
    const bool is_transfer = operation.kind == ModelCallKind::read || operation.kind == ModelCallKind::write;
    if (is_transfer && !operation.direct) {
        cost += transfer_time(static_cast<double>(operation.length), client.description.copy_rate);
        // A full cache evicts a page for each page that it inserts.
        if (client.description.page_evict_cost > 0 && client.pages.bytes() + page_bytes > client.pages.capacity()) {
            cost += static_cast<Time>(operation.length / page_bytes) * client.description.page_evict_cost;
        }
    }
    return client.slowdown == 1 ? cost : static_cast<Time>(static_cast<double>(cost) * client.slowdown);
}

std::optional<CompletedOperation> ClientCache::complete_without_event(Time time, const ModelOperation& operation) {
    if (operation.direct || operation.sync) {
        return std::nullopt;
    }
    ClientStream& stream = clients_.stream(operation.stream);
    const std::uint64_t end = operation.offset + operation.length;
    if (operation.kind == ModelCallKind::write) {
        WritePiece& piece = stream.piece;
        // The last byte of a piece sends a request, which needs an event.
        if (!piece.is_open || piece.file != operation.file || piece.written_until != operation.offset ||
            end >= piece.reserved_until) {
            return std::nullopt;
        }
        piece.written_until = end;
        FileState& file = files_[operation.file];
        file.size = std::max(file.size, end);
    } else if (operation.kind == ModelCallKind::read) {
        if (stream.file != operation.file || operation.offset < stream.ready_from || end > stream.ready_until ||
            cached_page_cost_s_ > 0) {
            return std::nullopt;
        }
        stream.last_read_end = end;
    } else {
        return std::nullopt;
    }
    const Time cpu = call_cpu_time(clients_[stream.client], operation);
    const Time return_time = stream.cpu.reserve(time, cpu).end;
    monitoring_.nodes[stream.client].add(operation, operation.length, return_time - time);
    return CompletedOperation{operation.tag, return_time, cpu, 0};
}

void ClientCache::close_file(StreamId stream) {
    write_back_piece(stream);
    unregister_writer(clients_.stream(stream));
}

void ClientCache::drop_pages(std::uint32_t client) {
    clients_[client].pages.clear();
    clients_[client].names.clear();
    for (const StreamId id : clients_[client].streams) {
        ClientStream& stream = clients_.stream(id);
        stream.ready_until = stream.ready_from;
    }
}

void ClientCache::on_request_done(const StorageRequest& request) {
    switch (request.purpose) {
        case RequestPurpose::call:
            if (--calls_[request.call].pending_requests == 0) {
                calls_.finish(request.call, timeline_.now());
            }
            return;
        case RequestPurpose::write_behind:
            return finish_write_back(request);
        case RequestPurpose::read_ahead:
            return finish_fetch(request);
    }
}

}  // namespace sonde::simulate
