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

const FaultRule& rule_of(FaultKind kind) {
    return fault_rules[static_cast<std::size_t>(kind)];
}

std::string names_of_faults() {
    std::string all;
    for (const FaultRule& rule : fault_rules) {
        all += (all.empty() ? "" : ", ") + std::string(rule.name);
    }
    return all;
}

std::vector<std::string> words_of(std::string_view text) {
    std::vector<std::string> words;
    std::string word;
    for (const char c : std::string(text) + " ") {
        if (std::isspace(static_cast<unsigned char>(c)) == 0) {
            word += c;
        } else if (!word.empty()) {
            words.push_back(word);
            word.clear();
        }
    }
    return words;
}

/// "10x", "30%", "1MiB", "262144", "30s" as a plain number; absent when it is none.
std::optional<double> number_of(const std::string& text) {
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (end == text.c_str() || !std::isfinite(value)) {
        return std::nullopt;
    }
    const std::string unit = end;
    struct Unit {
        const char* name;
        double factor;
    };
    constexpr Unit units[] = {{"", 1},         {"x", 1},        {"%", 0.01},     {"B", 1},     {"KiB", 0x1p10},
                              {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}, {"kB", 1e3},  {"MB", 1e6},
                              {"GB", 1e9},     {"ns", 1e-9},    {"us", 1e-6},    {"ms", 1e-3}, {"s", 1},
                              {"min", 60},     {"h", 3600}};
    for (const Unit& known : units) {
        if (unit == known.name) {
            return value * known.factor;
        }
    }
    return std::nullopt;
}

constexpr const char* tunables[] = {"rpc_size",    "rpcs_in_flight", "dirty_per_target",
                                    "dirty_limit", "read_ahead",     "page_cache"};

std::string shown(double amount) {
    std::array<char, 32> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), amount);
    return {digits.data(), end.ptr};
}

}  // namespace

std::string Fault::text() const {
    const FaultRule& rule = rule_of(kind);
    std::string all = rule.name;
    all += part.empty() ? "" : " " + part;
    all += *rule.amount == 0 ? "" : " " + shown(amount);
    all += from > 0 ? " at " + shown(seconds(from)) + "s" : "";
    return all;
}

Fault parse_fault(std::string_view text) {
    const auto wrong = [&text](const std::string& why) {
        return SiteError("fault \"" + std::string(text) + "\": " + why);
    };
    std::vector<std::string> words = words_of(text);
    Fault fault;
    if (words.size() >= 2 && words[words.size() - 2] == "at") {
        const std::optional<double> from = number_of(words.back());
        if (!from || *from < 0 || *from > longest_s) {
            throw wrong("\"" + words.back() + "\" is no time; write `at 30s`");
        }
        fault.from = time_of(*from);
        words.resize(words.size() - 2);
    }
    const auto rule = std::find_if(fault_rules.begin(), fault_rules.end(), [&](const FaultRule& known) {
        return !words.empty() && words.front() == known.name;
    });
    if (rule == fault_rules.end()) {
        throw wrong("there is none of that name; there are " + names_of_faults());
    }
    fault.kind = rule->kind;
    fault.amount = rule->usual;
    std::size_t next = 1;
    if (*rule->part != 0) {
        if (words.size() <= next) {
            throw wrong(std::string(rule->name) + " needs the " + rule->part + " it is about");
        }
        fault.part = words[next++];
    }
    if (words.size() > next) {
        std::string rest;  // "1 MiB" is one number
        for (; next < words.size(); ++next) {
            rest += words[next];
        }
        const std::optional<double> amount = number_of(rest);
        if (*rule->amount == 0) {
            throw wrong(std::string(rule->name) + " takes no number, but \"" + rest + "\" follows");
        }
        if (!amount || *amount < rule->least || *amount > rule->most) {
            throw wrong("\"" + rest + "\" is no " + rule->amount + " from " + shown(rule->least) + " to " +
                        shown(rule->most));
        }
        fault.amount = *amount;
        fault.usual = false;
    }
    if (fault.kind == FaultKind::tunable &&
        std::find(std::begin(tunables), std::end(tunables), fault.part) == std::end(tunables)) {
        throw wrong("\"" + fault.part +
                    "\" is no tunable of a client; there are rpc_size, rpcs_in_flight, dirty_per_target, dirty_limit, "
                    "read_ahead and page_cache");
    }
    // No room to write would be no progress; only what is kept may be nothing.
    if (fault.kind == FaultKind::tunable && fault.amount < 1 && fault.part != "read_ahead" &&
        fault.part != "page_cache") {
        throw wrong(fault.part + " must be at least 1");
    }
    return fault;
}

int target_named(const SiteModel& site, const std::string& name) {
    const bool number =
        !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
    for (std::size_t i = 0; i < site.targets.size(); ++i) {
        if (site.targets[i].id == name || (number && std::to_string(site.targets[i].index) == name)) {
            return static_cast<int>(i);
        }
    }
    return -1;
}

int client_named(const SiteModel& site, const std::string& name) {
    for (std::size_t i = 0; i < site.clients.size(); ++i) {
        if (site.clients[i].id == name) {
            return static_cast<int>(i);
        }
    }
    return -1;
}

int router_named(const SiteModel& site, const std::string& name) {
    for (std::size_t i = 0; i < site.routers.size(); ++i) {
        if (site.links[static_cast<std::size_t>(site.routers[i])].id == name) {
            return static_cast<int>(i);
        }
    }
    return -1;
}

namespace {

template <class Items, class Test>
bool any(const Items& items, Test test) {
    return std::any_of(items.begin(), items.end(), test);
}

/// Why a fault of this kind would change nothing on this mount, and what to describe so that it does. Empty: it would.
std::string without_effect(FaultKind kind, const SiteModel& site) {
    const std::string of = " of mount " + site.mount + " of system " + site.system + " ";
    switch (kind) {
        case FaultKind::noisy_neighbour:
            return any(site.targets,
                       [&site](const TargetSite& target) {
                           return target.rate.write > 0 ||
                                  (target.medium >= 0 &&
                                   site.media[static_cast<std::size_t>(target.medium)].rate.write > 0);
                       })
                       ? ""
                       : "no target" + of + "says its rate; give targets or their drives a rate";
        case FaultKind::unbalanced_path:
            return site.routers.size() > 1 ||
                           any(site.targets, [](const TargetSite& target) { return target.paths.size() > 1; })
                       ? ""
                       : "requests" + of + "have one way only; describe several [[routers]] or [[links]]";
        case FaultKind::cache_limit:
            return any(site.servers, [](const ServerSite& server) { return server.cache > 0; })
                       ? ""
                       : "no server" + of + "keeps what its drives hold; give servers model.cache";
        case FaultKind::client_software:
            return any(site.clients, [](const ClientSite& client) { return client.page_cache > 0; })
                       ? ""
                       : "no node" + of + "has a page cache; give nodes memory or model.page_cache";
        case FaultKind::full_file_system:
            return any(site.media, [](const MediumSite& medium) { return medium.inner_rate < 1 || medium.seek > 0; })
                       ? ""
                       : "where files lie costs nothing on the drives" + of +
                             "; describe targets on drives of kind hdd, or with model.seek";
        case FaultKind::misaligned_slices:
            return any(site.media, [](const MediumSite& medium) { return medium.parity && medium.segment > 0; })
                       ? ""
                       : "no target" + of +
                             "is on a RAID group with parity and a segment; give its raid_groups segment";
        default:
            return {};
    }
}

}  // namespace

void check_fault(const Fault& fault, const SiteModel& site) {
    const FaultRule& rule = rule_of(fault.kind);
    const std::string of = rule.part;
    const auto missing = [&](const std::string& kind, const std::string& example) {
        return SiteError("fault \"" + fault.text() + "\": mount " + site.mount + " of system " + site.system +
                         " has no " + kind + " \"" + fault.part + "\"" +
                         (example.empty() ? std::string() : "; the first is " + example));
    };
    if (of == "target" && target_named(site, fault.part) < 0) {
        throw missing("target", site.targets.front().id);
    }
    if (of == "node" && client_named(site, fault.part) < 0) {
        throw missing("node", site.clients.front().id);
    }
    if (of == "router" && router_named(site, fault.part) < 0) {
        throw missing("router", site.routers.empty() ? std::string()
                                                     : site.links[static_cast<std::size_t>(site.routers.front())].id);
    }
    if (fault.kind == FaultKind::router_lost && site.routers.size() < 2) {
        throw SiteError("fault \"" + fault.text() + "\": it is the only router, and nothing would arrive");
    }
    if (const std::string why = without_effect(fault.kind, site); !why.empty()) {
        throw SiteError("fault \"" + fault.text() + "\" would change nothing: " + why);
    }
}

}  // namespace sonde::simulate
