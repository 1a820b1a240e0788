// SPDX-License-Identifier: Apache-2.0
#include "model/machine_parts.hpp"

#include <cmath>

namespace sonde::simulate {
namespace {

/// The site with a link for each server that has a rate.
SiteModel add_limit_links(SiteModel site) {
    for (ServerSite& server : site.servers) {
        if (server.rate.write > 0 || server.rate.read > 0) {
            LinkSite limit;
            limit.id = server.id;
            limit.rate = server.rate;
            server.limit_link = static_cast<int>(site.links.size());
            site.links.push_back(limit);
        }
    }
    return site;
}

std::vector<Server> make_servers(const SiteModel& site, NoiseSeeds& seeds) {
    std::vector<Server> servers;
    for (const ServerSite& server : site.servers) {
        servers.emplace_back(server, seeds.seed, ++seeds.last_part);
    }
    return servers;
}

}  // namespace

MachineParts::MachineParts(SiteModel described_site, const MachineOptions& options, Listener& listener)
    : site(add_limit_links(std::move(described_site))),
      timeline(options.seed),
      seeds{options.seed},
      servers(make_servers(site, seeds)),
      network(site, seeds),
      clients(site),
      files(site, timeline),
      storage(site, seeds, servers, files, timeline, traces),
      calls(timeline, clients, files, traces, listener),
      metadata(site, servers, clients, files, network, calls, timeline, traces),
      cache(site, clients, files, network, storage, calls, timeline, traces),
      neighbors(storage, timeline) {
    traces.file_system = site.fs.id;
}

void MachineParts::update_counters() {
    metadata.count_calls_of_others();
    storage.update_counters();
}

void MachineParts::compute_free_space() {
    const std::vector<std::uint64_t> stored = files.stored_bytes();
    for (std::size_t i = 0; i < stored.size(); ++i) {
        TargetTrace& target = traces.targets[i];
        const auto unused =
            static_cast<std::uint64_t>(std::llround(static_cast<double>(target.capacity) * (1 - files.fill_level())));
        target.free_bytes = unused - std::min(unused, stored[i]);
    }
}

void MachineParts::add_sample() {
    metadata.count_calls_of_others();
    CounterSample row;
    row.time = timeline.now();
    for (const TargetTrace& target : traces.targets) {
        row.read.push_back(target.read_bytes.sum);
        row.written.push_back(target.write_bytes.sum);
    }
    traces.samples.push_back(std::move(row));
}

}  // namespace sonde::simulate
