// SPDX-License-Identifier: Apache-2.0
#include "system/storage_links.hpp"

#include "system/link_descriptions.hpp"

#include <algorithm>
#include <unordered_map>

namespace sonde::simulate {
namespace {

using nlohmann::json;

/// Appends to `paths` the paths along [[links]] from a host to a controller: each a list of link ids, at most 5. At
/// most 16 paths are found.
void find_paths(const SystemParts& system, const std::string& from, const std::string& to,
                std::vector<std::string>& path, std::vector<std::vector<std::string>>& paths) {
    if (from == to) {
        paths.push_back(path);
        return;
    }
    constexpr std::size_t max_length = 5, max_paths = 16;
    if (path.size() >= max_length || paths.size() >= max_paths) {
        return;
    }
    for (const json& link : system.list("links")) {
        const std::string id = get_text(link, "id");
        if (get_text(link, "near") == from && std::find(path.begin(), path.end(), id) == path.end()) {
            path.push_back(id);
            find_paths(system, get_text(link, "far"), to, path, paths);
            path.pop_back();
        }
    }
}

/// The links between hosts and drives: paths of local storage, controllers and enclosures.
class StorageLinks {
 public:
    StorageLinks(SystemModel& site, const SystemParts& system) : site_(site), system_(system) {}

    /// Adds the controller of a target, unless its paths have it, and the enclosure of its drives.
    void add_enclosure_links(TargetDescription& target) {
        add_write_cache(target);
        if (const std::string controller = find_controller(target); !controller.empty() && target.paths.empty()) {
            target.enclosure_links.push_back(get_controller_link(controller, target));
        }
        if (const std::string enclosure = find_enclosure(target); !enclosure.empty()) {
            if (const int link = get_enclosure_link(enclosure, target); link >= 0) {
                target.enclosure_links.push_back(link);
            }
        }
    }

    void add_paths(TargetDescription& target) {
        const std::string controller = find_controller(target);
        if (controller.empty()) {
            return;
        }
        std::vector<std::vector<std::string>> paths;
        for (const ClientDescription& client : site_.clients) {
            std::vector<std::string> path;
            find_paths(system_, client.id, controller, path, paths);
        }
        if (paths.empty()) {  // another node executes the calls of these
            for (const json& node : system_.list("nodes")) {
                std::vector<std::string> path;
                find_paths(system_, get_text(node, "id"), controller, path, paths);
            }
            add_path_assumption(!paths.empty());
        }
        for (const std::vector<std::string>& path : paths) {
            std::vector<int> links;
            for (const std::string& id : path) {
                links.push_back(get_link(id));
            }
            links.push_back(get_controller_link(controller, target));
            target.paths.push_back(links);
        }
    }

 private:
    /// Gives the drives of a target the write cache of their controller.
    void add_write_cache(const TargetDescription& target) {
        const std::string controller = find_controller(target);
        if (controller.empty() || target.medium < 0) {
            return;
        }
        const json& part = system_.get(controller);
        const std::uint64_t size = get_bytes(part, "cache", 0);
        if (!part.value("write_cache", false) || size == 0) {
            return;
        }
        auto& caches = site_.write_caches;
        auto cache = std::find_if(caches.begin(), caches.end(), [&controller](const WriteCacheDescription& other) {
            return other.controller == controller;
        });
        if (cache == caches.end()) {
            caches.push_back({controller, size});
            cache = std::prev(caches.end());
        }
        site_.media[static_cast<std::size_t>(target.medium)].write_cache = static_cast<int>(cache - caches.begin());
    }
    /// The controller of the LUN or RAID group below a target; empty: none is described.
    std::string find_controller(const TargetDescription& target) const {
        for (const json* part = system_.find(target.id); part != nullptr;) {
            if (const std::string name = get_text(*part, "controller"); !name.empty()) {
                return name;
            }
            part = system_.find(SystemParts::find_underlying_device(*part));
        }
        return {};
    }
    /// The enclosure that holds the drives of a target; empty: none is described, or there are several.
    std::string find_enclosure(const TargetDescription& target) const {
        std::string enclosure;
        const auto add_drive = [&](const std::string& id) {
            const json* drive = system_.find(id);
            const std::string name = drive != nullptr ? get_text(*drive, "enclosure") : std::string();
            const bool is_other = !enclosure.empty() && enclosure != name;
            enclosure = is_other ? "several" : name;
        };
        const json* part = system_.find(target.id);
        for (const json* next = part; next != nullptr;
             next = system_.find(SystemParts::find_underlying_device(*next))) {
            part = next;
        }
        if (part == nullptr) {
            return {};
        }
        const std::vector<std::string> drives = get_texts(*part, "drives");
        for (const std::string& id : drives.empty() ? std::vector<std::string>{get_text(*part, "id")} : drives) {
            add_drive(id);
        }
        return enclosure == "several" ? std::string() : enclosure;
    }
    void add_path_assumption(bool uses_other_paths) {
        const std::string sentence = "no node of mount " + site_.mount +
                                     " has a link to the controllers: requests take " +
                                     (uses_other_paths ? "the links of other nodes" : "no link");
        if (std::find(site_.assumptions.begin(), site_.assumptions.end(), sentence) == site_.assumptions.end()) {
            site_.assumptions.push_back(sentence);
        }
    }
    /// Parity that a controller computes limits the data written through it.
    void limit_parity(int link, const TargetDescription& target, const json& controller) {
        if (target.medium < 0 || site_.media[static_cast<std::size_t>(target.medium)].parity_drives == 0) {
            return;
        }
        const double parity_rate = get_parameter_rate(controller, "parity_rate", 0);
        double& write = site_.links[static_cast<std::size_t>(link)].rate.write;
        if (parity_rate > 0) {
            write = write > 0 ? std::min(write, parity_rate) : parity_rate;
        }
    }
    /// The link into an enclosure; -1: it has no limit. Parity is written through it too: written bytes are data bytes.
    int get_enclosure_link(const std::string& id, const TargetDescription& target) {
        const json& part = system_.get(id);
        DirectedRate rate = read_directed_rate(part);
        if (rate.write <= 0 && rate.read <= 0) {
            return -1;
        }
        const auto [entry, is_new] = link_indices_.try_emplace(id, 0);
        if (is_new) {
            const MediumDescription* medium =
                target.medium >= 0 ? &site_.media[static_cast<std::size_t>(target.medium)] : nullptr;
            if (medium != nullptr && medium->parity_drives > 0) {
                rate.write *= static_cast<double>(medium->data_drives) / (medium->data_drives + medium->parity_drives);
            }
            LinkDescription link;
            link.id = id;
            link.rate = rate;
            link.request_cost = get_parameter_duration(part, "request_cost", 0);
            link.noise = get_parameter(part, "noise", 0);
            link.slowdown = get_parameter(part, "slowdown", 1);
            site_.links.push_back(link);
            entry->second = static_cast<int>(site_.links.size()) - 1;
        }
        return entry->second;
    }
    int get_link(const std::string& id) {
        const auto [entry, is_new] = link_indices_.try_emplace(id, 0);
        if (is_new) {
            const json& part = system_.get(id);
            const json* network = system_.find(get_text(part, "network"));
            LinkDescription link;
            link.id = id;
            link.rate = read_directed_rate(part);
            if (link.rate.write <= 0 && network != nullptr) {
                link.rate = read_directed_rate(*network);
            }
            const double count = std::max(get_number(part, "count", 1), 1.0);
            link.rate = {link.rate.read * count, link.rate.write * count};
            apply_network(link, network);
            site_.links.push_back(link);
            entry->second = static_cast<int>(site_.links.size()) - 1;
        }
        return entry->second;
    }
    int get_controller_link(const std::string& id, const TargetDescription& target) {
        const json& part = system_.get(id);
        const auto [entry, is_new] = link_indices_.try_emplace(id, 0);
        if (is_new) {
            LinkDescription link;
            link.id = id;
            link.rate = read_directed_rate(part);
            if (link.rate.write <= 0) {
                const DirectedRate port = read_directed_rate(part, "port_rate");
                const double ports = std::max(get_number(part, "ports", 1), 1.0);
                link.rate = {port.read * ports, port.write * ports};
            }
            link.request_cost = get_parameter_duration(part, "request_cost", 0);
            link.noise = get_parameter(part, "noise", 0);
            link.slowdown = get_parameter(part, "slowdown", 1);
            site_.links.push_back(link);
            entry->second = static_cast<int>(site_.links.size()) - 1;
        }
        limit_parity(entry->second, target, part);
        return entry->second;
    }

    SystemModel& site_;
    const SystemParts& system_;
    std::unordered_map<std::string, int> link_indices_;  ///< by id
};

}  // namespace

void add_storage_links(SystemModel& site, const SystemParts& system) {
    if (site.file_system.is_local && site.file_system.log_rate > 0) {
        LinkDescription log;
        log.id = site.file_system.id + "/log";
        log.rate = {0, site.file_system.log_rate};
        site.log = static_cast<int>(site.links.size());
        site.links.push_back(log);
    }
    StorageLinks storage_links(site, system);
    for (TargetDescription& target : site.targets) {
        if (site.file_system.is_local) {
            storage_links.add_paths(target);
        }
        storage_links.add_enclosure_links(target);
    }
}

}  // namespace sonde::simulate
