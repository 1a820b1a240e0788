// SPDX-License-Identifier: Apache-2.0
#include "ranks/node_map.hpp"

#include "ranks/launcher.hpp"

#include <sys/random.h>
#include <sys/stat.h>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <unordered_map>

namespace sonde::ranks {
namespace {

// FNV-1a: must give the same value in every process of the run, which std::hash does not promise.
void mix(std::uint64_t& hash, const std::string& text) {
    for (const char character : text + '\n') {
        hash = (hash ^ static_cast<unsigned char>(character)) * 0x100000001b3ULL;
    }
}

}  // namespace

Identity Identity::mine() {
    Identity me;
    // For tests: several nodes on one machine, without the rights that namespaces need.
    const char* pretended = std::getenv("SONDE_PRETEND_NODE");
    const std::string host = pretended != nullptr ? pretended : host_name();
    std::string boot;
    std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
    struct stat network {};
    stat("/proc/self/ns/net", &network);
    me.machine = 0xcbf29ce484222325ULL;
    for (const std::string& part : {boot, host, std::to_string(network.st_ino)}) {
        mix(me.machine, part);
    }
    if (getrandom(&me.token, sizeof me.token, 0) != sizeof me.token) {
        me.token = me.machine ^ static_cast<std::uint64_t>(time(nullptr));
    }
    std::strncpy(me.host.data(), host.c_str(), me.host.size() - 1);
    std::strncpy(me.version.data(), SONDE_VERSION, me.version.size() - 1);
    return me;
}

std::string mixed_engines(std::span<const Identity> all) {
    const std::string first = all.front().version.data();
    std::string hosts;
    int others = 0;
    const Identity* other = nullptr;
    std::uint64_t last_machine = 0;
    for (const Identity& one : all) {
        if (first == one.version.data()) {
            continue;
        }
        other = other == nullptr ? &one : other;
        if (one.machine != last_machine && ++others <= 3) {
            hosts += (hosts.empty() ? "" : ", ") + std::string(one.host.data());
        }
        last_machine = one.machine;
    }
    if (other == nullptr) {
        return {};
    }
    return hosts + (others > 3 ? " and " + std::to_string(others - 3) + " more nodes" : std::string()) +
           " would run engine " + other->version.data() + ", and " + all.front().host.data() + " engine " + first +
           ": one run needs the same engine everywhere; name its path in SONDE_ENGINE, or install it anew there";
}

NodeMap map_nodes(std::span<const Identity> all, int process) {
    NodeMap map;
    map.place.process = process;
    map.place.processes = static_cast<int>(all.size());
    map.place.node_of.reserve(all.size());
    std::unordered_map<std::uint64_t, int> known;
    std::vector<int> locals;
    for (std::size_t other = 0; other < all.size(); ++other) {
        const auto [entry, fresh] = known.try_emplace(all[other].machine, static_cast<int>(known.size()));
        const auto node = static_cast<std::size_t>(entry->second);
        if (fresh) {
            map.leaders.push_back(static_cast<int>(other));
            locals.push_back(0);
        }
        if (static_cast<int>(other) == process) {
            map.place.node = entry->second;
            map.place.local = locals[node];
        }
        ++locals[node];
        map.place.node_of.push_back(entry->second);
    }
    const auto node = static_cast<std::size_t>(map.place.node);
    map.place.nodes = static_cast<int>(map.leaders.size());
    map.place.locals = locals[node];
    map.place.host = all[static_cast<std::size_t>(process)].host.data();
    map.token = all[static_cast<std::size_t>(map.leaders[node])].token;
    return map;
}

}  // namespace sonde::ranks
