// SPDX-License-Identifier: Apache-2.0
// Machines small enough to be worked out on paper, and a driver that makes calls one after the other.
#pragma once

#include "model/machine.hpp"

#include <map>
#include <string>
#include <vector>

namespace sonde::simulate {

inline constexpr std::uint64_t mib = 1U << 20U;

/// `clients` nodes with free calls and copies, no cache, and `targets` targets of `rate` bytes/s each without servers.
inline SiteModel small_site(std::size_t clients, std::size_t targets, double rate) {
    SiteModel site;
    site.system = site.mount = "small";
    site.fs.id = "fs";
    site.fs.stripe_count = -1;
    site.fs.stripe_size = 1U << 20U;
    for (std::size_t i = 0; i < clients; ++i) {
        ClientSite client;
        client.id = "c" + std::to_string(i);
        client.copy_rate = 0;  // no limit
        client.rpc_size = 1U << 20U;
        client.rpcs_in_flight = 8;
        site.clients.push_back(client);
    }
    for (std::size_t i = 0; i < targets; ++i) {
        TargetSite target;
        target.id = "t" + std::to_string(i);
        target.index = static_cast<std::uint32_t>(i);
        target.rate = {rate, rate};
        site.targets.push_back(target);
    }
    ServerSite names;
    names.id = "names";
    names.threads = 1;
    names.create = names.open = names.stat = names.remove = time_of(1e-3);
    site.servers.push_back(names);
    site.metadata_servers = {0};
    return site;
}

/// A link of `rate` bytes/s in both directions; its index.
inline int add_link(SiteModel& site, const std::string& id, double rate, Time latency = 0) {
    LinkSite link;
    link.id = id;
    link.rate = {rate, rate};
    link.latency = latency;
    site.links.push_back(link);
    return static_cast<int>(site.links.size()) - 1;
}

/// One target of `rate` bytes/s a drive: RAID 5 of eight data drives and one of parity, segment 256 KiB.
inline SiteModel raid_site(double rate) {
    SiteModel site = small_site(1, 1, 0);
    site.fs.local = true;
    site.fs.stripe_size = 1024 * mib;
    site.targets[0].rate = {};
    MediumSite medium;
    medium.id = "md0";
    medium.data = 8;
    medium.drives = 9;
    medium.segment = 256U << 10U;
    medium.parity = true;
    medium.rate = {rate, rate};
    site.media.push_back(medium);
    site.targets[0].medium = 0;
    return site;
}

/// Keeps when each tag was done.
struct Heard : Listener {
    std::map<std::uint64_t, Time> at;
    void done(const Done& what) override { at[what.tag] = what.at; }
    void woken(Time when, std::uint64_t tag) override { at[tag] = when; }
};

/// Each stream makes its next call when the last one is done, `calls` of them.
struct ClosedLoop : Listener {
    Machine* machine = nullptr;
    std::vector<Operation> next;      ///< by stream number
    std::vector<std::uint64_t> left;  ///< calls of each
    Time last = 0;

    void start() {
        for (std::size_t i = 0; i < next.size(); ++i) {
            next[i].tag = i;
            machine->submit(0, next[i]);
        }
        while (active()) {
            machine->step();
        }
    }
    bool active() const {
        for (const std::uint64_t calls : left) {
            if (calls > 0) {
                return true;
            }
        }
        return false;
    }
    void done(const Done& what) override {
        last = what.at;
        Operation& operation = next[what.tag];
        operation.offset += operation.length;
        if (--left[what.tag] > 0) {
            machine->submit(what.at, operation);
        }
    }
    void woken(Time, std::uint64_t) override {}
};

}  // namespace sonde::simulate
