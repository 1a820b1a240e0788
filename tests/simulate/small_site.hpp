// SPDX-License-Identifier: Apache-2.0
// Machines whose times can be computed by hand, and a driver that makes calls one after the other.
#pragma once

#include "model/machine.hpp"

#include <map>
#include <string>
#include <vector>

namespace sonde::simulate {

inline constexpr std::uint64_t mib = 1U << 20U;

/// `clients` nodes with calls and copies that take no time and no cache, and `targets` targets of `rate` bytes/s
/// without servers.
inline SystemModel small_site(std::size_t clients, std::size_t targets, double rate) {
    SystemModel site;
    site.system = site.mount = "small";
    site.file_system.id = "fs";
    site.file_system.stripe_count = -1;
    site.file_system.stripe_size = 1U << 20U;
    for (std::size_t i = 0; i < clients; ++i) {
        ClientDescription client;
        client.id = "c" + std::to_string(i);
        client.copy_rate = 0;  // no limit
        client.rpc_size = 1U << 20U;
        client.rpcs_in_flight = 8;
        site.clients.push_back(client);
    }
    for (std::size_t i = 0; i < targets; ++i) {
        TargetDescription target;
        target.id = "t" + std::to_string(i);
        target.index_in_file_system = static_cast<std::uint32_t>(i);
        target.rate = {rate, rate};
        site.targets.push_back(target);
    }
    ServerDescription names;
    names.id = "names";
    names.threads = 1;
    names.create = names.open = names.stat = names.remove = seconds_to_time(1e-3);
    site.servers.push_back(names);
    site.metadata_servers = {0};
    return site;
}

/// Adds a link of `rate` bytes/s per direction and returns its index.
inline int add_link(SystemModel& site, const std::string& id, double rate, Time latency = 0) {
    LinkDescription link;
    link.id = id;
    link.rate = {rate, rate};
    link.latency = latency;
    site.links.push_back(link);
    return static_cast<int>(site.links.size()) - 1;
}

/// One target of `rate` bytes/s a drive: RAID 5 of eight data drives and one of parity, segment 256 KiB.
inline SystemModel raid_site(double rate) {
    SystemModel site = small_site(1, 1, 0);
    site.file_system.is_local = true;
    site.file_system.stripe_size = 1024 * mib;
    site.targets[0].rate = {};
    MediumDescription medium;
    medium.id = "md0";
    medium.data_drives = 8;
    medium.drive_count = 9;
    medium.segment_bytes = 256U << 10U;
    medium.parity_drives = 1;
    medium.rate = {rate, rate};
    site.media.push_back(medium);
    site.targets[0].medium = 0;
    return site;
}

/// Records the completion time of each tag.
struct CompletionTimes : Listener {
    std::map<std::uint64_t, Time> times;
    void on_completion(const CompletedOperation& completed) override { times[completed.tag] = completed.end; }
    void on_alarm(Time when, std::uint64_t tag) override { times[tag] = when; }
};

/// Each stream makes its next call when the last one is done.
struct ClosedLoop : Listener {
    Machine* machine = nullptr;
    std::vector<ModelOperation> next_operations;  ///< by stream number
    std::vector<std::uint64_t> remaining_calls;   ///< by stream
    Time last = 0;

    void start() {
        for (std::size_t i = 0; i < next_operations.size(); ++i) {
            next_operations[i].tag = i;
            machine->submit(0, next_operations[i]);
        }
        while (is_active()) {
            machine->handle_next_event();
        }
    }
    bool is_active() const {
        for (const std::uint64_t calls : remaining_calls) {
            if (calls > 0) {
                return true;
            }
        }
        return false;
    }
    void on_completion(const CompletedOperation& completed) override {
        last = completed.end;
        ModelOperation& operation = next_operations[completed.tag];
        operation.offset += operation.length;
        if (--remaining_calls[completed.tag] > 0) {
            machine->submit(completed.end, operation);
        }
    }
    void on_alarm(Time, std::uint64_t) override {}
};

}  // namespace sonde::simulate
