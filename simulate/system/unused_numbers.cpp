// SPDX-License-Identifier: Apache-2.0
#include "system/unused_numbers.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>

namespace sonde::simulate {
namespace {

using nlohmann::json;

/// Members of the table `model` that the model uses, by kind of part.
const std::map<std::string, std::set<std::string>>& used_parameters() {
    static const std::set<std::string> node = {"call_cost",   "call_rate",        "copy_rate",    "page_cache",
                                               "dirty_limit", "dirty_per_target", "read_ahead",   "read_ahead_total",
                                               "rpc_size",    "rpcs_in_flight",   "write_behind", "evict_cost",
                                               "slowdown",    "cached_names"};
    static const auto with = [](std::set<std::string> names, const std::set<std::string>& others) {
        names.insert(others.begin(), others.end());
        return names;
    };
    static const std::map<std::string, std::set<std::string>> used = {
        {"nodes", node},
        {"routers", with({"request_cost", "noise"}, node)},  // a router may have the mount
        {"servers",
         {"rate", "threads", "request_cost", "cache", "cache_max_file", "create_cost", "stat_cost", "open_cost",
          "remove_cost", "readdir_cost", "rename_cost", "mkdir_cost", "journal_cost", "cached_cost", "noise",
          "slowdown"}},
        {"networks", {"message_cost", "noise", "slowdown"}},
        {"links", {}},
        {"drives", {"seek", "rotation", "turnaround", "request_cost", "inner_rate"}},
        {"controllers", {"request_cost", "parity_rate", "noise", "slowdown"}},
        {"enclosures", {"request_cost", "noise", "slowdown"}},
        {"raid_groups", {"partial_stripe_cost", "rebuild_share", "degraded_share", "noise", "slowdown"}},
        {"luns", {}},
        {"volumes", {}},
        {"targets", {"rate", "queue_depth", "request_cost", "writer_cost", "contention", "noise", "slowdown"}},
        {"file_systems", {"lock_cost", "revoke_cost", "lock_unit", "cached_page_cost", "log_rate", "layout_cost"}},
        {"mounts",
         {"forward_cost", "forward_threads", "forward_rate", "client_read_rate", "client_write_rate", "reads_in_flight",
          "writes_in_flight", "data_cost", "size_cost"}},
    };
    return used;
}

struct KindMember {
    const char* kind;
    const char* name;
};

/// Other members with a number that could change a rate.
constexpr std::array unused_members{
    KindMember{"networks", "bisection"},
    KindMember{"links", "latency"},
    KindMember{"controllers", "max_transfer"},
};

}  // namespace

void add_unused_numbers(SystemModel& site, const SystemParts& system) {
    std::map<std::string, std::vector<std::string>> parts_by_member;  // "model.congestion of networks" -> ids
    for (const auto& [kind, used] : used_parameters()) {
        for (const json& part : system.list(kind.c_str())) {
            const json parameters = part.value("model", json::object());
            for (const auto& [name, value] : parameters.items()) {
                if (!used.contains(name)) {
                    parts_by_member["model." + name + " of " + kind].push_back(get_text(part, "id"));
                }
            }
        }
    }
    for (const KindMember& member : unused_members) {
        for (const json& part : system.list(member.kind)) {
            if (part.contains(member.name)) {
                parts_by_member[std::string(member.name) + " of " + member.kind].push_back(get_text(part, "id"));
            }
        }
    }
    // The cache of a controller is used for writes, where both its size and its mode are described.
    for (const json& part : system.list("controllers")) {
        const bool is_write_back = part.value("write_cache", false);
        if (part.contains("cache") && !is_write_back) {
            parts_by_member["cache of controllers"].push_back(get_text(part, "id"));
        } else if (is_write_back && !part.contains("cache")) {
            parts_by_member["write_cache (without a size in cache) of controllers"].push_back(get_text(part, "id"));
        }
    }
    for (const auto& [member, ids] : parts_by_member) {
        site.unused_members.push_back("the model does not use " + member + " " + ids.front() +
                                      (ids.size() > 1 ? " and " + std::to_string(ids.size() - 1) + " more" : ""));
    }
}

}  // namespace sonde::simulate
