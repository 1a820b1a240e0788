// SPDX-License-Identifier: Apache-2.0
#include "model/metadata_servers.hpp"

namespace sonde::simulate {
namespace {

bool changes_names(ModelCallKind kind) {
    return kind == ModelCallKind::create || kind == ModelCallKind::remove || kind == ModelCallKind::mkdir ||
           kind == ModelCallKind::rmdir || kind == ModelCallKind::rename;
}

}  // namespace

MetadataServers::MetadataServers(const SystemModel& site, std::vector<Server>& servers, ClientTable& clients,
                                 FileTable& files, Network& network, PendingCalls& calls, Timeline& timeline,
                                 MonitoringData& monitoring)
    : site_(site),
      servers_(servers),
      clients_(clients),
      files_(files),
      network_(network),
      calls_(calls),
      timeline_(timeline),
      monitoring_(monitoring) {
    for (const int server : site.metadata_servers) {
        monitoring.metadata.push_back({site.servers[static_cast<std::size_t>(server)].id, {}});
    }
}

/// Time of a message to a metadata server, in one direction.
Time MetadataServers::message_time(const Client& client) const {
    return network_.metadata_message_time(client, servers_[static_cast<std::size_t>(site_.metadata_servers.front())]);
}

/// The client answers a stat of a name that it keeps itself.
void MetadataServers::send_call(std::uint32_t call) {
    const ModelOperation& operation = calls_[call].operation;
    Client& client = clients_.client_of(operation.stream);
    if (operation.kind == ModelCallKind::stat && client.names.contains(operation.file)) {
        return calls_.finish(call, timeline_.now());
    }
    const Time sent = network_.reserve_forwarder(network_.choose_forwarder(client), timeline_.now());
    timeline_.push(add_time(sent, message_time(client)), EventKind::metadata_call, call);
}

Time MetadataServers::service_time(const Server& server, const ModelOperation& operation, const FileState& file) const {
    const ServerDescription& costs = server.description;
    Time cost = 0;
    switch (operation.kind) {
        case ModelCallKind::create:
            cost = costs.create;
            break;
        case ModelCallKind::open:
        case ModelCallKind::close:
            cost = costs.open;
            break;
        case ModelCallKind::stat:
            cost = file.is_cached_by_server && costs.cached_stat >= 0 ? costs.cached_stat : costs.stat;
            break;
        case ModelCallKind::remove:
            cost = costs.remove;
            break;
        case ModelCallKind::mkdir:
        case ModelCallKind::rmdir:
            cost = costs.mkdir;
            break;
        case ModelCallKind::rename:
            cost = costs.rename;
            break;
        case ModelCallKind::readdir:
            cost = costs.open + costs.readdir * static_cast<Time>(operation.length);
            break;
        default:
            break;
    }
    if (operation.kind == ModelCallKind::open || operation.kind == ModelCallKind::create) {
        cost += site_.file_system.layout_cost * file.layout.count;
    }
    return cost;
}

/// Additional time to create a file with content. It occupies no server.
Time MetadataServers::content_transfer_time(const ModelOperation& operation) const {
    if (operation.kind != ModelCallKind::create || operation.length == 0) {
        return 0;
    }
    return site_.data_cost + seconds_to_time(site_.size_cost_s * static_cast<double>(operation.length) / 1024);
}

/// A service with the wait for operations of other users that are as long. They occupy a share r of the time, so as in
/// M/M/1 no one is ahead with 1 - r, and otherwise the wait is exponential: on average 1 / (1 - r) times as long.
Time MetadataServers::add_background_wait(Time service) {
    if (background_load_ <= 0 || timeline_.random.uniform() >= background_load_) {
        return service;
    }
    return add_time(service, multiply_time(service, timeline_.random.exponential() / (1 - background_load_)));
}

void MetadataServers::serve_call(std::uint32_t call) {
    const Time now = timeline_.now();
    const ModelOperation& operation = calls_[call].operation;
    FileState& file = files_[operation.file];
    // Files are distributed over the metadata servers.
    const std::size_t server_number = operation.file % site_.metadata_servers.size();
    Server& server = servers_[static_cast<std::size_t>(site_.metadata_servers[server_number])];
    const double factor = server.slowdown * server.noise.factor(now);
    const Time service = multiply_time(service_time(server, operation, file), factor);
    Time end = server.threads.reserve(now, add_background_wait(service)).end;
    if (changes_names(operation.kind) && server.description.journal > 0) {
        end = server.journal.reserve(end, add_background_wait(multiply_time(server.description.journal, factor))).end;
    }
    file.is_cached_by_server = true;
    if (operation.kind == ModelCallKind::stat) {
        clients_.client_of(operation.stream).names.insert(operation.file);
    }
    monitoring_.metadata[server_number].calls[static_cast<std::size_t>(operation.kind)].add(
        static_cast<std::uint64_t>((end - now) / 1000));
    const Time answer_time = message_time(clients_.client_of(operation.stream));
    timeline_.push(end + content_transfer_time(operation) + answer_time, EventKind::metadata_done, call);
}

void MetadataServers::set_background_load(double share) {
    count_background_calls();
    background_load_ = share;
}

void MetadataServers::count_background_calls() {
    const Time since = timeline_.now() - background_counted_until_;
    background_counted_until_ = timeline_.now();
    if (background_load_ <= 0) {
        return;
    }
    for (std::size_t i = 0; i < site_.metadata_servers.size(); ++i) {
        const ServerDescription& server = servers_[static_cast<std::size_t>(site_.metadata_servers[i])].description;
        if (server.stat > 0) {
            const double call_count = background_load_ * server.threads * to_seconds(since) / to_seconds(server.stat);
            ServerCounters& counters = monitoring_.metadata[i];
            counters.background_stats += call_count;
            counters.background_us = static_cast<std::uint64_t>(server.stat / 1000);
        }
    }
}

}  // namespace sonde::simulate
