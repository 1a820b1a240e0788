// SPDX-License-Identifier: Apache-2.0
#include "model/client_table.hpp"

#include <algorithm>
#include <iterator>

namespace sonde::simulate {

ClientTable::ClientTable(const SystemModel& site) {
    clients_.reserve(site.clients.size());
    for (const ClientDescription& described : site.clients) {
        Client& client = clients_.emplace_back();
        client.description = described;
        client.pages = ExtentCache(described.page_cache_bytes);
        client.names = NameCache(described.cached_names);
        caches_names_ = caches_names_ || described.cached_names > 0;
        client.slowdown = described.slowdown;
        client.next_forwarder =
            static_cast<std::uint32_t>(clients_.size() - 1);  // so that clients begin at different ones
    }
}

bool ClientTable::has_dirty_data() const {
    return std::any_of(clients_.begin(), clients_.end(),
                       [](const Client& client) { return client.write_back_count > 0; });
}

void ClientTable::remove_cached_file(FileId file) {
    for (Client& client : clients_) {
        client.pages.remove_file(file);
    }
}

void ClientTable::remove_cached_name(FileId file) {
    if (!caches_names_) {
        return;
    }
    for (Client& client : clients_) {
        client.names.erase(file);
    }
}

StreamId ClientTable::begin_stream(std::uint32_t client) {
    StreamId id = 0;
    if (free_streams_.empty()) {
        id = static_cast<StreamId>(streams_.size());
        streams_.emplace_back();
    } else {
        id = free_streams_.back();
        free_streams_.pop_back();
        ClientStream stream;  // requests of the previous stream of this number may be in flight
        std::copy(std::begin(streams_[id].in_flight_limit), std::end(streams_[id].in_flight_limit),
                  stream.in_flight_limit);
        streams_[id] = std::move(stream);
    }
    streams_[id].client = client;
    clients_[client].streams.push_back(id);
    return id;
}

void ClientTable::end_stream(StreamId id) {
    std::erase(clients_[streams_[id].client].streams, id);
    if (streams_[id].missing_ranges.empty()) {
        free_streams_.push_back(id);  // otherwise its read-ahead is in flight
    }
}

}  // namespace sonde::simulate
