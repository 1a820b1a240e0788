// SPDX-License-Identifier: Apache-2.0
#include "model/machine_parts.hpp"

#include <algorithm>
#include <cmath>

namespace sonde::simulate {
namespace {

/// The site with a link for each server that has a rate.
SystemModel add_limit_links(SystemModel site) {
    for (ServerDescription& server : site.servers) {
        if (server.rate.write > 0 || server.rate.read > 0) {
            LinkDescription limit;
            limit.id = server.id;
            limit.rate = server.rate;
            server.limit_link = static_cast<int>(site.links.size());
            site.links.push_back(limit);
        }
    }
    return site;
}

std::vector<Server> make_servers(const SystemModel& site, NoiseSeeds& seeds) {
    std::vector<Server> servers;
    for (const ServerDescription& server : site.servers) {
        servers.emplace_back(server, seeds.seed, ++seeds.part_count);
    }
    return servers;
}

}  // namespace

MachineParts::MachineParts(SystemModel described_site, const MachineOptions& options, Listener& listener)
    : system(add_limit_links(std::move(described_site))),
      timeline(options.seed),
      seeds{options.seed},
      servers(make_servers(system, seeds)),
      network(system, seeds, monitoring),
      clients(system),
      files(system, timeline),
      storage(system, seeds, servers, files, timeline, monitoring),
      calls(timeline, clients, files, monitoring, listener),
      metadata(system, servers, clients, files, network, calls, timeline, monitoring),
      cache(system, clients, files, network, storage, calls, timeline, monitoring),
      neighbors(storage, timeline) {
    monitoring.file_system = system.file_system.id;
}

void MachineParts::update_counters() {
    metadata.count_background_calls();
    storage.copy_drive_counters();
    network.copy_link_counters(monitoring);
}

void MachineParts::compute_free_space() {
    const std::vector<std::uint64_t> stored = files.stored_bytes();
    for (std::size_t i = 0; i < stored.size(); ++i) {
        TargetCounters& target = monitoring.targets[i];
        const auto unused = static_cast<std::uint64_t>(
            std::llround(static_cast<double>(target.capacity_bytes) * (1 - files.fill_level())));
        target.free_bytes = unused - std::min(unused, stored[i]);
    }
}

std::vector<PartLoad> MachineParts::loads() const {
    std::vector<PartLoad> loads;
    for (const Link& link : network.links()) {
        loads.push_back({"link", link.description.id,
                         to_seconds(std::max(link.directions[0].busy_time(), link.directions[1].busy_time()))});
    }
    const auto add_threads = [&loads](const char* kind, const std::string& part, const MultiServerStation& threads) {
        if (threads.server_count() > 0) {
            loads.push_back(
                {kind, part, to_seconds(threads.busy_time()) / static_cast<double>(threads.server_count())});
        }
    };
    for (const Server& server : servers) {
        add_threads("server", server.description.id, server.threads);
        loads.push_back({"metadata journal", server.description.id, to_seconds(server.journal.busy_time())});
    }
    for (std::size_t i = 0; i < system.forwarders.size(); ++i) {
        const std::size_t link = static_cast<std::size_t>(system.forwarders[i]);
        add_threads("forwarder", system.links[link].id, network.forwarder_threads(i));
    }
    for (const StorageTarget& target : storage.targets()) {
        loads.push_back({"storage target", target.description.id, to_seconds(target.rate_station.busy_time())});
        add_threads("storage target", target.description.id, target.queue);
        loads.push_back({"lock manager", target.description.id, to_seconds(target.lock_manager.busy_time())});
    }
    for (const Medium& medium : storage.media()) {
        loads.push_back({"drives", medium.description.id, to_seconds(medium.busy_time())});
    }
    return loads;
}

void MachineParts::add_sample() {
    metadata.count_background_calls();
    CounterSample row;
    row.time = timeline.now();
    for (const TargetCounters& target : monitoring.targets) {
        row.read.push_back(target.read_bytes.sum);
        row.written.push_back(target.write_bytes.sum);
    }
    monitoring.samples.push_back(std::move(row));
}

}  // namespace sonde::simulate
