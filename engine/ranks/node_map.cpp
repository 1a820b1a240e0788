// SPDX-License-Identifier: Apache-2.0
#include "ranks/node_map.hpp"

#include "ranks/launcher.hpp"

#include <sys/random.h>
#include <sys/stat.h>
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <unordered_map>

namespace sonde::ranks {
namespace {

// FNV-1a, because std::hash does not guarantee the same value in every process.
void mix_into_hash(std::uint64_t& hash, const std::string& text) {
    for (const char character : text + '\n') {
        hash = (hash ^ static_cast<unsigned char>(character)) * 0x100000001b3ULL;
    }
}

}  // namespace

ProcessIdentity ProcessIdentity::of_this_process(const std::string& listed_name) {
    ProcessIdentity own_identity;
    // For tests: simulates several nodes on one machine without namespaces.
    const char* pretended = std::getenv("SONDE_PRETEND_NODE");
    const std::string host = pretended != nullptr ? pretended : host_name();
    std::string boot;
    std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
    struct stat network {};
    stat("/proc/self/ns/net", &network);
    own_identity.machine = 0xcbf29ce484222325ULL;
    for (const std::string& part : {boot, host, std::to_string(network.st_ino)}) {
        mix_into_hash(own_identity.machine, part);
    }
    if (getrandom(&own_identity.token, sizeof own_identity.token, 0) != sizeof own_identity.token) {
        own_identity.token = own_identity.machine ^ static_cast<std::uint64_t>(time(nullptr));
    }
    std::strncpy(own_identity.host.data(), host.c_str(), own_identity.host.size() - 1);
    const std::string name = listed_name.empty() ? host_name() : listed_name;
    if (name.size() < own_identity.listed_name.size()) {
        std::copy(name.begin(), name.end(), own_identity.listed_name.begin());
    }
    std::strncpy(own_identity.version.data(), SONDE_VERSION, own_identity.version.size() - 1);
    return own_identity;
}

std::string explain_version_mismatch(std::span<const ProcessIdentity> identities) {
    const std::string first = identities.front().version.data();
    std::string hosts;
    int others = 0;
    const ProcessIdentity* other = nullptr;
    std::uint64_t last_machine = 0;
    for (const ProcessIdentity& identity : identities) {
        if (first == identity.version.data()) {
            continue;
        }
        other = other == nullptr ? &identity : other;
        if (identity.machine != last_machine && ++others <= 3) {
            hosts += (hosts.empty() ? "" : ", ") + std::string(identity.host.data());
        }
        last_machine = identity.machine;
    }
    if (other == nullptr) {
        return {};
    }
    return hosts + (others > 3 ? " and " + std::to_string(others - 3) + " more nodes" : std::string()) +
           " would run engine " + other->version.data() + ", and " + identities.front().host.data() + " engine " +
           first +
           ": one run needs the same engine everywhere; name its path in SONDE_ENGINE, or install it anew there";
}

NodeMap map_nodes(std::span<const ProcessIdentity> identities, int process) {
    NodeMap map;
    map.location.process = process;
    map.location.processes = static_cast<int>(identities.size());
    map.location.node_of.reserve(identities.size());
    std::unordered_map<std::uint64_t, int> node_of_machine;
    std::vector<int> local_count;
    for (std::size_t other = 0; other < identities.size(); ++other) {
        const auto [entry, fresh] =
            node_of_machine.try_emplace(identities[other].machine, static_cast<int>(node_of_machine.size()));
        const auto node = static_cast<std::size_t>(entry->second);
        if (fresh) {
            map.leaders.push_back(static_cast<int>(other));
            map.node_names.emplace_back(identities[other].listed_name.data());
            local_count.push_back(0);
        }
        if (static_cast<int>(other) == process) {
            map.location.node = entry->second;
            map.location.local_index = local_count[node];
        }
        ++local_count[node];
        map.location.node_of.push_back(entry->second);
    }
    const auto node = static_cast<std::size_t>(map.location.node);
    map.location.nodes = static_cast<int>(map.leaders.size());
    map.location.local_count = local_count[node];
    map.location.host = identities[static_cast<std::size_t>(process)].host.data();
    map.token = identities[static_cast<std::size_t>(map.leaders[node])].token;
    return map;
}

}  // namespace sonde::ranks
