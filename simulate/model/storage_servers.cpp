// SPDX-License-Identifier: Apache-2.0
#include "model/storage_servers.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>

namespace sonde::simulate {
namespace {

/// A server logs writes that take longer, as Lustre does (there from 30 s on).
constexpr std::uint64_t logged_write_us = 1'000'000;

/// The name of a target in Lustre: fs1-OST0011. Other file systems have the id.
std::string lustre_target_name(const SystemModel& site, const TargetDescription& target) {
    if (site.file_system.kind != "lustre") {
        return target.id;
    }
    char number[16];
    std::snprintf(number, sizeof number, "-OST%04x", target.index_in_file_system);
    return site.file_system.id + number;
}

}  // namespace

StorageServers::StorageServers(const SystemModel& site, NoiseSeeds& seeds, std::vector<Server>& servers,
                               FileTable& files, Timeline& timeline, MonitoringData& monitoring)
    : site_(site), servers_(servers), files_(files), timeline_(timeline), monitoring_(monitoring) {
    for (const MediumDescription& medium : site.media) {
        media_.emplace_back(medium, seeds.seed, ++seeds.part_count);
        monitoring.media.push_back({medium.id, {}, {}, {}, {}, {}});
        if (medium.segment_bytes > 0 && medium.drive_ids.size() == media_.back().seek_stations.size()) {
            for (const std::string& drive : medium.drive_ids) {
                monitoring.drives.push_back({drive, {}, {}, {}, {}, {}});
            }
        }
    }
    for (const WriteCacheDescription& cache : site.write_caches) {
        write_caches_.emplace_back(cache);
    }
    for (const TargetDescription& target : site.targets) {
        targets_.emplace_back(target, seeds.seed, ++seeds.part_count);
        TargetCounters& counters = monitoring.targets.emplace_back();
        counters.id = target.id;
        counters.name = lustre_target_name(site, target);
        counters.capacity_bytes = target.capacity_bytes;
    }
}

Medium* StorageServers::get_medium(const StorageTarget& target) {
    return target.description.medium >= 0 ? &media_[static_cast<std::size_t>(target.description.medium)] : nullptr;
}

const Server* StorageServers::find_server(std::uint32_t target) const {
    const int server = targets_[target].description.server;
    return server >= 0 ? &servers_[static_cast<std::size_t>(server)] : nullptr;
}

const std::string& StorageServers::log_host_of_target(std::uint32_t target) const {
    const Server* server = find_server(target);
    return server != nullptr ? server->description.id : site_.clients.front().id;
}

double StorageServers::write_rate(std::uint32_t target) const {
    const TargetDescription& described = targets_[target].description;
    if (described.rate.write > 0) {
        return described.rate.write;
    }
    return described.medium >= 0 ? media_[static_cast<std::size_t>(described.medium)].description.rate.write : 0;
}

/// When the locks of a request are granted, or revoked from other clients. A target grants one lock at a time.
Time StorageServers::acquire_locks(const StorageRequest& request, Time arrival) {
    FileState& file = files_[request.file];
    const std::uint64_t unit = site_.file_system.lock_unit_bytes;
    if (unit == 0) {
        return arrival;
    }
    const std::uint64_t last = (request.file_offset + request.length - 1) / unit;
    if (file.lock_holders.size() <= last) {
        file.lock_holders.resize(std::max<std::size_t>(last + 1, file.lock_holders.size() * 2), 0);
    }
    Time cost = 0;
    for (std::uint64_t i = request.file_offset / unit; i <= last; ++i) {
        std::uint32_t& holder = file.lock_holders[i];
        const std::uint32_t me = request.client + 1;
        if (holder != 0 && holder != me) {
            cost += site_.file_system.revoke_cost;
        } else if (holder == 0 && request.is_write) {
            cost += site_.file_system.lock_cost;
        }
        holder = request.is_write ? me : holder == me ? me : 0;
    }
    return cost > 0 ? targets_[request.target].lock_manager.reserve(arrival, cost).end : arrival;
}

void StorageServers::receive(StorageRequest& request, std::uint32_t request_index) {
    const Time now = timeline_.now();
    if (const Time recovered_at = targets_[request.target].recovered_at; recovered_at > now) {
        return timeline_.push(recovered_at, EventKind::at_server, request_index);
    }
    request.server_arrival = now;
    Time ready_time = now;
    if (const int number = targets_[request.target].description.server; number >= 0) {
        Server& server = servers_[static_cast<std::size_t>(number)];
        if (server.description.request_cost > 0) {
            const double factor = server.slowdown * server.noise.factor(now);
            ready_time =
                server.threads
                    .reserve(now, static_cast<Time>(static_cast<double>(server.description.request_cost) * factor))
                    .end;
        }
        const FileState& file = files_[request.file];
        const bool is_cacheable = server.cache.capacity() > 0 && file.size <= server.description.max_cached_file_bytes;
        const std::uint64_t object = std::uint64_t{request.file} << 20U | request.target;
        const std::uint64_t end = request.object_offset + request.length;
        if (is_cacheable && !request.is_write &&
            server.cache.find_end_of_cached_bytes(object, request.object_offset) >= end) {
            monitoring_.targets[request.target].cache_hits += request.length / page_bytes;
            ready_time = acquire_locks(request, ready_time);
            request.last_byte_time = ready_time;
            return timeline_.push(ready_time, EventKind::media_done, request_index);
        }
        if (is_cacheable) {
            monitoring_.targets[request.target].cache_misses += request.is_write ? 0 : request.length / page_bytes;
            server.cache.insert(object, request.object_offset, end);
        }
    }
    ready_time = acquire_locks(request, ready_time);
    if (ready_time > now) {
        timeline_.push(ready_time, EventKind::at_media, request_index);
    } else {
        submit_to_media(request, request_index);
    }
}

/// A command fails on the first drive of the target, which tries for half a second to read the sector again; commands
/// behind it wait. Returns when the command is sent again.
Time StorageServers::retry_on_drive(const StorageRequest& request) {
    constexpr Time error_recovery = 500'000'000;
    const Time now = timeline_.now();
    StorageTarget& target = targets_[request.target];
    Medium* medium = get_medium(target);
    const std::string& drive = medium == nullptr                       ? target.description.id
                               : medium->description.drive_ids.empty() ? medium->description.id
                                                                       : medium->description.drive_ids.front();
    if (++monitoring_.targets[request.target].retries % 16 == 1) {
        monitoring_.log(
            now, log_host_of_target(request.target),
            "blk_update_request: I/O error, dev " + drive + ", sector " + std::to_string(request.object_offset / 512));
    }
    SingleServerStation& station = medium == nullptr ? target.rate_station : medium->seek_stations.front();
    return station.reserve(now, error_recovery).end;
}

/// The cache that answers writes to these drives; null where none does.
WriteCache* StorageServers::find_write_cache(const Medium* medium) {
    if (medium == nullptr || medium->description.write_cache < 0) {
        return nullptr;
    }
    WriteCache& cache = write_caches_[static_cast<std::size_t>(medium->description.write_cache)];
    return cache.is_write_back() ? &cache : nullptr;
}

void StorageServers::write_to_drives(WriteCache& cache, const std::vector<WriteCache::DriveWrite>& writes) {
    for (const WriteCache::DriveWrite& write : writes) {
        StorageTarget& target = targets_[write.target];
        const ServiceTimes times = serve_request(target, get_medium(target), write.request, timeline_.now());
        cache.add_pending(times.done, write.request.length);
    }
}

/// A write is done when the cache has room for it.
ServiceTimes StorageServers::write_to_cache(WriteCache& cache, std::uint32_t target, const MediaRequest& request) {
    const MediumDescription& medium = get_medium(targets_[target])->description;
    const std::uint64_t stripe = medium.parity_drives > 0 ? medium.segment_bytes * medium.data_drives : 0;
    write_to_drives(cache, cache.add_write({target, request}, stripe, targets_[target].slice_misalignment));
    const Time done = cache.find_room(timeline_.now());
    return {done, done};
}

void StorageServers::set_write_back(std::size_t cache, bool enabled) {
    write_to_drives(write_caches_[cache], write_caches_[cache].flush_all());
    write_caches_[cache].set_write_back(enabled);
}

void StorageServers::submit_to_media(StorageRequest& request, std::uint32_t request_index) {
    const Time now = timeline_.now();
    StorageTarget& target = targets_[request.target];
    if (target.retry_share > 0 && !request.was_retried && timeline_.random.uniform() < target.retry_share) {
        request.was_retried = true;
        return timeline_.push(retry_on_drive(request), EventKind::at_media, request_index);
    }
    const FileState& file = files_[request.file];
    MediaRequest media_request;
    media_request.object = request.file;
    media_request.offset = request.object_offset;
    media_request.length = request.length;
    media_request.is_write = request.is_write;
    media_request.drive_position = file.drive_position;
    media_request.fragments =
        file.fragments <= 1 ? 1 : 1 + static_cast<std::uint32_t>((file.fragments - 1) * request.length / (1ULL << 20U));
    media_request.writer_count = std::max(file.writer_count, 1U);
    Medium* medium = get_medium(target);
    WriteCache* cache = find_write_cache(medium);
    if (cache != nullptr && !request.is_write) {
        write_to_drives(*cache, cache->remove_partial_stripe(request.target, media_request.object));
    }
    const ServiceTimes times = cache != nullptr && request.is_write
                                   ? write_to_cache(*cache, request.target, media_request)
                                   : serve_request(target, medium, media_request, now);
    request.last_byte_time = times.done;
    timeline_.push(request.is_write || request.hop_count == 0 ? times.done : times.first_byte, EventKind::media_done,
                   request_index);
}

void StorageServers::trace_request(const StorageRequest& request) {
    TargetCounters& counters = monitoring_.targets[request.target];
    const std::size_t pages = std::bit_width(std::max<std::uint64_t>(request.length / page_bytes, 1)) - 1;
    const auto us = static_cast<std::uint64_t>((request.last_byte_time - request.server_arrival) / 1000);
    (request.is_write ? counters.write_bytes : counters.read_bytes).add(request.length);
    (request.is_write ? counters.write_us : counters.read_us).add(us);
    if (request.is_write && us >= logged_write_us && counters.slow_writes++ % 16 == 0 &&
        site_.file_system.kind == "lustre") {
        monitoring_.log(timeline_.now(), log_host_of_target(request.target),
                        "Lustre: " + counters.name + ": slow start_page_write " + std::to_string(us / 1'000'000) +
                            "s due to heavy IO load");
    }
    auto& histogram = request.is_write ? counters.write_pages : counters.read_pages;
    ++histogram[std::min(pages, histogram.size() - 1)];
}

Time StorageServers::submit_neighbor_request(std::uint32_t target_index, const MediaRequest& request, Time time) {
    StorageTarget& target = targets_[target_index];
    const ServiceTimes times = serve_request(target, get_medium(target), request, time);
    TargetCounters& counters = monitoring_.targets[target_index];
    counters.write_bytes.add(request.length);
    counters.neighbor_bytes += request.length;
    return times.done;
}

void StorageServers::move_targets(int server, bool to_partner, Time recovered_at) {
    const int partner = site_.servers[static_cast<std::size_t>(server)].partner;
    for (std::size_t i = 0; i < targets_.size(); ++i) {
        if (site_.targets[i].server == server) {
            targets_[i].description.server = to_partner ? partner : server;
            targets_[i].recovered_at = recovered_at;
        }
    }
}

void StorageServers::set_first_drive_slowdown(std::uint32_t target, double factor) {
    get_medium(targets_[target])->first_drive_slowdown = factor;
}

void StorageServers::copy_drive_counters() {
    std::size_t next_drive = 0;
    for (std::size_t i = 0; i < media_.size(); ++i) {
        const Medium& medium = media_[i];
        const DriveCounters& group = medium.counters;
        monitoring_.media[i] = {medium.description.id, group.reads,         group.read_bytes,
                                group.writes,          group.written_bytes, medium.busy_time()};
        if (medium.description.segment_bytes == 0 ||
            medium.description.drive_ids.size() != medium.seek_stations.size()) {
            continue;
        }
        for (std::size_t arm = 0; arm < medium.seek_stations.size(); ++arm) {
            const DriveCounters &drive = medium.drives[arm], &all = medium.average_drive;
            monitoring_.drives[next_drive++] = {
                medium.description.drive_ids[arm],       drive.reads + all.reads,
                drive.read_bytes + all.read_bytes,       drive.writes + all.writes,
                drive.written_bytes + all.written_bytes, medium.seek_stations[arm].busy_time()};
        }
    }
}

}  // namespace sonde::simulate
