// SPDX-License-Identifier: Apache-2.0
#include "model/fault.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>

namespace sonde::simulate {
namespace {

const FaultRule& fault_rule(FaultKind kind) {
    return fault_rules[static_cast<std::size_t>(kind)];
}

std::string list_fault_names() {
    std::string names;
    for (const FaultRule& rule : fault_rules) {
        names += (names.empty() ? "" : ", ") + std::string(rule.name);
    }
    return names;
}

std::vector<std::string> split_words(std::string_view text) {
    std::vector<std::string> arguments;
    std::string word;
    for (const char c : std::string(text) + " ") {
        if (std::isspace(static_cast<unsigned char>(c)) == 0) {
            word += c;
        } else if (!word.empty()) {
            arguments.push_back(word);
            word.clear();
        }
    }
    return arguments;
}

/// Parses "10x", "30%", "1MiB", "262144" or "30s"; empty for other text.
std::optional<double> parse_amount(const std::string& text) {
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (end == text.c_str() || !std::isfinite(value)) {
        return std::nullopt;
    }
    const std::string unit = end;
    struct AmountUnit {
        const char* name;
        double factor;
    };
    constexpr AmountUnit units[] = {{"", 1},         {"x", 1},        {"%", 0.01},     {"B", 1},     {"KiB", 0x1p10},
                                    {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}, {"kB", 1e3},  {"MB", 1e6},
                                    {"GB", 1e9},     {"ns", 1e-9},    {"us", 1e-6},    {"ms", 1e-3}, {"s", 1},
                                    {"min", 60},     {"h", 3600}};
    for (const AmountUnit& candidate : units) {
        if (unit == candidate.name) {
            return value * candidate.factor;
        }
    }
    return std::nullopt;
}

constexpr const char* tunables[] = {"rpc_size",    "rpcs_in_flight", "dirty_per_target",
                                    "dirty_limit", "read_ahead",     "page_cache"};

std::string format_amount(double amount) {
    std::array<char, 32> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), amount);
    return {digits.data(), end.ptr};
}

/// Takes "at 30s" and "until 60s" off the end of the arguments. `wrong` makes the error from a reason.
template <class MakeError>
void parse_times(Fault& fault, std::vector<std::string>& arguments, const MakeError& wrong) {
    while (arguments.size() >= 2) {
        const std::string& word = arguments[arguments.size() - 2];
        if (word != "at" && word != "until") {
            break;
        }
        const std::optional<double> time = parse_amount(arguments.back());
        if (!time || *time < 0 || *time > longest_s) {
            throw wrong("\"" + arguments.back() + "\" is no time; write `" + word + " 30s`");
        }
        (word == "at" ? fault.from : fault.until) = seconds_to_time(*time);
        arguments.resize(arguments.size() - 2);
    }
    if (fault.until > 0 && fault.until <= fault.from) {
        throw wrong("it ends before it begins");
    }
}

}  // namespace

std::string Fault::to_text() const {
    const FaultRule& rule = fault_rule(kind);
    std::string text = rule.name;
    text += part.empty() ? "" : " " + part;
    text += *rule.amount_meaning == 0 ? "" : " " + format_amount(amount);
    text += from > 0 ? " at " + format_amount(to_seconds(from)) + "s" : "";
    text += until > 0 ? " until " + format_amount(to_seconds(until)) + "s" : "";
    return text;
}

Fault parse_fault(std::string_view text) {
    const auto wrong = [&text](const std::string& why) {
        return SystemModelError("fault \"" + std::string(text) + "\": " + why);
    };
    std::vector<std::string> arguments = split_words(text);
    Fault fault;
    parse_times(fault, arguments, wrong);
    const auto rule = std::find_if(fault_rules.begin(), fault_rules.end(), [&](const FaultRule& candidate) {
        return !arguments.empty() && arguments.front() == candidate.name;
    });
    if (rule == fault_rules.end()) {
        throw wrong("there is none of that name; there are " + list_fault_names());
    }
    fault.kind = rule->kind;
    fault.amount = rule->default_amount;
    std::size_t next = 1;
    if (*rule->part_kind != 0) {
        if (arguments.size() <= next) {
            throw wrong(std::string(rule->name) + " needs the " + rule->part_kind + " it is about");
        }
        fault.part = arguments[next++];
    }
    if (arguments.size() > next) {
        std::string number;  // "1 MiB" is one number
        for (; next < arguments.size(); ++next) {
            number += arguments[next];
        }
        const std::optional<double> amount = parse_amount(number);
        if (*rule->amount_meaning == 0) {
            throw wrong(std::string(rule->name) + " takes no number, but \"" + number + "\" follows");
        }
        if (!amount || *amount < rule->minimum || *amount > rule->maximum) {
            throw wrong("\"" + number + "\" is no " + rule->amount_meaning + " from " + format_amount(rule->minimum) +
                        " to " + format_amount(rule->maximum));
        }
        fault.amount = *amount;
        fault.has_default_amount = false;
    }
    if (fault.kind == FaultKind::tunable &&
        std::find(std::begin(tunables), std::end(tunables), fault.part) == std::end(tunables)) {
        throw wrong("\"" + fault.part +
                    "\" is no tunable of a client; there are rpc_size, rpcs_in_flight, dirty_per_target, dirty_limit, "
                    "read_ahead and page_cache");
    }
    // A limit of 0 would stop all progress, except for caches.
    if (fault.kind == FaultKind::tunable && fault.amount < 1 && fault.part != "read_ahead" &&
        fault.part != "page_cache") {
        throw wrong(fault.part + " must be at least 1");
    }
    return fault;
}

int find_target_index(const SystemModel& site, const std::string& name) {
    const bool is_number =
        !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
    for (std::size_t i = 0; i < site.targets.size(); ++i) {
        if (site.targets[i].id == name || (is_number && std::to_string(site.targets[i].index_in_file_system) == name)) {
            return static_cast<int>(i);
        }
    }
    return -1;
}

int find_client_index(const SystemModel& site, const std::string& name) {
    for (std::size_t i = 0; i < site.clients.size(); ++i) {
        if (site.clients[i].id == name) {
            return static_cast<int>(i);
        }
    }
    return -1;
}

int find_router_index(const SystemModel& site, const std::string& name) {
    for (std::size_t i = 0; i < site.routers.size(); ++i) {
        if (site.links[static_cast<std::size_t>(site.routers[i])].id == name) {
            return static_cast<int>(i);
        }
    }
    return -1;
}

namespace {

template <class Items>
int find_by_id(const Items& items, const std::string& name) {
    const auto item = std::find_if(items.begin(), items.end(), [&](const auto& other) { return other.id == name; });
    return item == items.end() ? -1 : static_cast<int>(item - items.begin());
}

}  // namespace

int find_link_index(const SystemModel& site, const std::string& name) {
    return find_by_id(site.links, name);
}

int find_server_index(const SystemModel& site, const std::string& name) {
    return find_by_id(site.servers, name);
}

int find_write_cache_index(const SystemModel& site, const std::string& controller) {
    const auto& caches = site.write_caches;
    const auto cache = std::find_if(caches.begin(), caches.end(),
                                    [&](const WriteCacheDescription& other) { return other.controller == controller; });
    return cache == caches.end() ? -1 : static_cast<int>(cache - caches.begin());
}

namespace {

template <class Items, class Test>
bool any_of(const Items& items, Test test) {
    return std::any_of(items.begin(), items.end(), test);
}

/// Why a fault of this kind has no effect on this mount, and what to describe for it. Empty: it has an effect.
std::string explain_no_effect(FaultKind kind, const SystemModel& site) {
    const std::string of_mount = " of mount " + site.mount + " of system " + site.system + " ";
    switch (kind) {
        case FaultKind::noisy_neighbor:
            return any_of(site.targets,
                          [&site](const TargetDescription& target) {
                              return target.rate.write > 0 ||
                                     (target.medium >= 0 &&
                                      site.media[static_cast<std::size_t>(target.medium)].rate.write > 0);
                          })
                       ? ""
                       : "no target" + of_mount + "says its rate; give targets or their drives a rate";
        case FaultKind::unbalanced_path:
            return site.routers.size() > 1 ||
                           any_of(site.targets, [](const TargetDescription& target) { return target.paths.size() > 1; })
                       ? ""
                       : "requests" + of_mount + "have one way only; describe several [[routers]] or [[links]]";
        case FaultKind::cache_limit:
            return any_of(site.servers, [](const ServerDescription& server) { return server.read_cache_bytes > 0; })
                       ? ""
                       : "no server" + of_mount + "keeps what its drives hold; give servers model.cache";
        case FaultKind::client_software:
            return any_of(site.clients, [](const ClientDescription& client) { return client.page_cache_bytes > 0; })
                       ? ""
                       : "no node" + of_mount + "has a page cache; give nodes memory or model.page_cache";
        case FaultKind::full_file_system:
            return any_of(site.media,
                          [](const MediumDescription& medium) {
                              return medium.inner_rate_share < 1 || medium.seek > 0;
                          }) ||
                           any_of(site.targets,
                                  [](const TargetDescription& target) { return target.capacity_bytes > 0; })
                       ? ""
                       : "where files lie costs nothing on the drives" + of_mount +
                             "; describe targets on drives of kind hdd, or with model.seek";
        case FaultKind::misaligned_slices:
            return any_of(
                       site.media,
                       [](const MediumDescription& medium) { return medium.parity_drives && medium.segment_bytes > 0; })
                       ? ""
                       : "no target" + of_mount +
                             "is on a RAID group with parity and a segment; give its raid_groups segment";
        default:
            return {};
    }
}

}  // namespace

namespace {

/// Throws SystemModelError when a lost server has no partner, or no target.
void check_server(const Fault& fault, const SystemModel& site, const SystemModelError& missing_part) {
    const int server = find_server_index(site, fault.part);
    if (server < 0) {
        throw missing_part;
    }
    if (site.servers[static_cast<std::size_t>(server)].partner < 0) {
        throw SystemModelError("fault \"" + fault.to_text() + "\": no server takes over from " + fault.part +
                               "; give its servers failover = \"pairs\" or a partner");
    }
    if (!any_of(site.targets, [server](const TargetDescription& target) { return target.server == server; })) {
        throw SystemModelError("fault \"" + fault.to_text() + "\" would change nothing: " + fault.part +
                               " has no target");
    }
}

/// Throws SystemModelError when the drives of a target are not known one by one.
void check_drive(const Fault& fault, const SystemModel& site) {
    const int medium = site.targets[static_cast<std::size_t>(find_target_index(site, fault.part))].medium;
    if (medium < 0 || site.media[static_cast<std::size_t>(medium)].segment_bytes == 0) {
        throw SystemModelError("fault \"" + fault.to_text() + "\": the drives of " + fault.part +
                               " are not described; put it on a RAID group with a segment");
    }
}

/// The amount of a fault that changes nothing; < 0: there is none.
double neutral_amount(const Fault& fault, const SystemModel& site) {
    switch (fault.kind) {
        case FaultKind::slow_target:
        case FaultKind::slow_node:
        case FaultKind::slow_drive:
        case FaultKind::slow_link:
        case FaultKind::unbalanced_path:
            return 1;
        case FaultKind::failing_drive:
        case FaultKind::noisy_neighbor:
        case FaultKind::mds_saturated:
        case FaultKind::lossy_link:
            return 0;
        case FaultKind::full_file_system:
            return fault.amount <= site.file_system.used_share ? fault.amount : -1;
        default:
            return -1;
    }
}

}  // namespace

void check_fault(const Fault& fault, const SystemModel& site) {
    const FaultRule& rule = fault_rule(fault.kind);
    const std::string part_kind = rule.part_kind;
    const auto missing_part = [&](const std::string& kind, const std::string& example) {
        return SystemModelError("fault \"" + fault.to_text() + "\": mount " + site.mount + " of system " + site.system +
                                " has no " + kind + " \"" + fault.part + "\"" +
                                (example.empty() ? std::string() : "; the first is " + example));
    };
    if (part_kind == "target" && find_target_index(site, fault.part) < 0) {
        throw missing_part("target", site.targets.front().id);
    }
    if (part_kind == "node" && find_client_index(site, fault.part) < 0) {
        throw missing_part("node", site.clients.front().id);
    }
    if (part_kind == "router" && find_router_index(site, fault.part) < 0) {
        throw missing_part("router", site.routers.empty()
                                         ? std::string()
                                         : site.links[static_cast<std::size_t>(site.routers.front())].id);
    }
    if (part_kind == "link" && find_link_index(site, fault.part) < 0) {
        throw missing_part("link", site.links.empty() ? std::string() : site.links.front().id);
    }
    if (part_kind == "server") {
        check_server(fault, site, missing_part("server", site.servers.front().id));
    }
    if (fault.kind == FaultKind::slow_drive) {
        check_drive(fault, site);
    }
    if (part_kind == "controller" && find_write_cache_index(site, fault.part) < 0) {
        throw SystemModelError(
            "fault \"" + fault.to_text() + "\" would change nothing: mount " + site.mount + " of system " +
            site.system + " has no controller \"" + fault.part +
            "\" with a write cache; give controllers write_cache = true and the size of their cache");
    }
    if (fault.kind == FaultKind::router_lost && site.routers.size() < 2) {
        throw SystemModelError("fault \"" + fault.to_text() + "\": it is the only router, and nothing would arrive");
    }
    if (fault.amount == neutral_amount(fault, site)) {
        throw SystemModelError("fault \"" + fault.to_text() + "\" would change nothing: its " + rule.amount_meaning +
                               " is that of a machine without the fault");
    }
    if (const std::string why = explain_no_effect(fault.kind, site); !why.empty()) {
        throw SystemModelError("fault \"" + fault.to_text() + "\" would change nothing: " + why);
    }
}

}  // namespace sonde::simulate
