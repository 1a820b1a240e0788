// SPDX-License-Identifier: Apache-2.0
// Data servers, storage targets and drives: what a request waits for from its arrival at the server to its completion
// at the drives.
#pragma once

#include "model/file_table.hpp"
#include "model/monitoring_data.hpp"
#include "model/storage.hpp"
#include "model/storage_request.hpp"
#include "model/timeline.hpp"
#include "model/write_cache.hpp"
#include "system/system_model.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace sonde::simulate {

class StorageServers {
 public:
    StorageServers(const SystemModel& site, NoiseSeeds& seeds, std::vector<Server>& servers, FileTable& files,
                   Timeline& timeline, MonitoringData& monitoring);

    /// The last byte of a request, or the request of a read, is at the server: plans its next event. `request_index` is
    /// the subject of the event.
    void receive(StorageRequest& request, std::uint32_t request_index);
    /// Passes a request to its target and plans the event of its completion there.
    void submit_to_media(StorageRequest& request, std::uint32_t request_index);
    /// Counts a completed request.
    void trace_request(const StorageRequest& request);
    /// Submits a request of other users to a target, at a time that may have passed. Returns when it is done.
    Time submit_neighbor_request(std::uint32_t target, const MediaRequest& request, Time time);

    StorageTarget& target(std::uint32_t target_index) noexcept { return targets_[target_index]; }
    std::size_t target_count() const noexcept { return targets_.size(); }
    const std::vector<StorageTarget>& targets() const noexcept { return targets_; }
    const std::vector<Medium>& media() const noexcept { return media_; }
    /// The partner of a server takes over its targets, or it takes them back. Requests wait until `recovered_at`.
    void move_targets(int server, bool to_partner, Time recovered_at);
    void set_first_drive_slowdown(std::uint32_t target, double factor);
    /// Switches the write cache of a controller, which is written to the drives, to write-back or write-through.
    void set_write_back(std::size_t cache, bool enabled);
    /// The server of a target; null for local storage.
    const Server* find_server(std::uint32_t target) const;
    /// The host that logs errors of a target: its server, or the first client for local storage.
    const std::string& log_host_of_target(std::uint32_t target) const;
    /// Bytes/s that a target writes; 0: unknown.
    double write_rate(std::uint32_t target) const;
    void copy_drive_counters();

 private:
    Medium* get_medium(const StorageTarget& target);
    Time retry_on_drive(const StorageRequest& request);
    WriteCache* find_write_cache(const Medium* medium);
    ServiceTimes write_to_cache(WriteCache& cache, std::uint32_t target, const MediaRequest& request);
    void write_to_drives(WriteCache& cache, const std::vector<WriteCache::DriveWrite>& writes);
    Time acquire_locks(const StorageRequest& request, Time arrival);

    const SystemModel& site_;
    std::vector<Server>& servers_;
    FileTable& files_;
    Timeline& timeline_;
    MonitoringData& monitoring_;
    std::vector<Medium> media_;
    std::vector<StorageTarget> targets_;
    std::vector<WriteCache> write_caches_;  ///< as in SystemModel::write_caches
};

}  // namespace sonde::simulate
