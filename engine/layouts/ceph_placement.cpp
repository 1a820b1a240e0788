// SPDX-License-Identifier: Apache-2.0
// Names, hash and groups are those of Ceph's sources: file_layout_t and Striper::file_to_extents,
// ceph_str_hash_rjenkins, ceph_stable_mod.
#include "layouts/ceph_placement.hpp"

#include "layouts/ceph_format.hpp"
#include "plan/json_io.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>
#include <vector>

namespace sonde::layouts {
namespace {

constexpr std::int64_t max_groups = 1 << 30;  // of a pool; Ceph itself refuses more than 65,536

using nlohmann::json;

constexpr std::uint64_t max_blocks = 16'384;
constexpr int jenkins_hash_id = 2;  // CEPH_STR_HASH_RJENKINS
// A hundred bytes a group; large clusters have some hundred thousand of them.
constexpr std::size_t longest_answer = 64U << 20U;

/// What `ceph` prints as JSON stands among remarks ("dumped pgs_brief").
json parse_enclosed_json(std::string_view text, char open, char close) {
    const std::size_t begin = text.find(open);
    const std::size_t end = text.rfind(close);
    const json document = begin == std::string_view::npos || end == std::string_view::npos || end < begin
                              ? json()
                              : plan::parse_json_or_discard(text.substr(begin, end - begin + 1));
    if (document.is_discarded() || document.is_null()) {
        throw std::invalid_argument("what `ceph` says of its placement groups is not JSON");
    }
    return document;
}

void mix_jenkins_hash(std::uint32_t& a, std::uint32_t& b, std::uint32_t& c) {
    a = (a - b - c) ^ (c >> 13U);
    b = (b - c - a) ^ (a << 8U);
    c = (c - a - b) ^ (b >> 13U);
    a = (a - b - c) ^ (c >> 12U);
    b = (b - c - a) ^ (a << 16U);
    c = (c - a - b) ^ (b >> 5U);
    a = (a - b - c) ^ (c >> 3U);
    b = (b - c - a) ^ (a << 10U);
    c = (c - a - b) ^ (b >> 15U);
}

/// Groups are split one by one when a pool grows: a number that does not exist yet falls on the one it will come from.
std::uint32_t to_placement_group(std::uint32_t hash, std::uint32_t groups) {
    const std::uint32_t mask = std::bit_ceil(groups) - 1;
    return (hash & mask) < groups ? hash & mask : hash & (mask >> 1U);
}

/// Throws std::out_of_range when the value is a fraction, which may be undefined to convert, or out of range.
template <class Number>
Number parse_integer(const json& value, std::int64_t most = std::numeric_limits<Number>::max()) {
    const auto number = value.is_number_integer() ? value.get<std::int64_t>() : -1;
    if (!std::in_range<Number>(number) || number > most || !value.is_number_integer()) {
        throw std::out_of_range("not a whole number");
    }
    return static_cast<Number>(number);
}

/// Throws std::out_of_range when `text` is no such number of 32 bits.
std::uint32_t parse_hexadecimal(std::string_view text) {
    std::uint32_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, 16);
    if (error != std::errc() || end != text.data() + text.size()) {
        throw std::out_of_range("not a hexadecimal number");
    }
    return number;
}

std::string make_object_name(std::uint64_t inode, std::uint64_t number) {
    std::string name(40, '\0');
    name.resize(static_cast<std::size_t>(std::snprintf(name.data(), name.size(), "%llx.%08llx",
                                                       static_cast<unsigned long long>(inode),
                                                       static_cast<unsigned long long>(number))));
    return name;
}

}  // namespace

std::uint32_t hash_ceph_name(std::string_view name) {
    std::uint32_t a = 0x9e3779b9;
    std::uint32_t b = a;
    std::uint32_t c = 0;
    const auto word = [&](std::size_t begin, std::size_t bytes) {
        std::uint32_t value = 0;
        for (std::size_t i = 0; i < bytes && begin + i < name.size(); ++i) {
            value |= static_cast<std::uint32_t>(static_cast<unsigned char>(name[begin + i])) << (8 * i);
        }
        return value;
    };
    std::size_t position = 0;
    for (; name.size() - position >= 12; position += 12) {
        a += word(position, 4);
        b += word(position + 4, 4);
        c += word(position + 8, 4);
        mix_jenkins_hash(a, b, c);
    }
    // The lowest byte of the last word is the length's.
    c += static_cast<std::uint32_t>(name.size()) + (word(position + 8, 3) << 8U);
    a += word(position, 4);
    b += word(position + 4, 4);
    mix_jenkins_hash(a, b, c);
    return c;
}

CephPlacement CephPlacement::from_command_outputs(std::string_view pools, std::string_view groups) {
    CephPlacement placement;
    try {
        std::map<std::string, std::string> by_number;
        for (const json& pool : parse_enclosed_json(pools, '[', ']')) {
            if (parse_integer<int>(pool.at("object_hash")) == jenkins_hash_id) {
                const auto name = pool.at("pool_name").get<std::string>();
                by_number[std::to_string(parse_integer<std::int64_t>(pool.at("pool_id")))] = name;
                placement.pools_[name].placement_groups = parse_integer<std::uint32_t>(pool.at("pg_num"), max_groups);
            }
        }
        const json document = parse_enclosed_json(groups, '{', '}');
        for (const json& group : document.at("pg_stats")) {
            const auto id = group.at("pgid").get<std::string>();  // "3.1f"
            const std::size_t dot = id.find('.');
            const auto pool = by_number.find(id.substr(0, dot));
            if (pool != by_number.end() && dot != std::string::npos) {
                const auto number = parse_hexadecimal(std::string_view(id).substr(dot + 1));
                placement.pools_[pool->second].primary_osd_of_group[number] =
                    parse_integer<std::int32_t>(group.at("acting_primary"));
            }
        }
    } catch (const json::exception&) {
        throw std::invalid_argument("what `ceph` says of its placement groups lacks a member that it should have");
    } catch (const std::out_of_range&) {
        throw std::invalid_argument("what `ceph` says of its placement groups has a number that cannot be");
    }
    return placement;
}

std::string CephPlacement::to_json_text() const {
    json all = json::object();
    for (const auto& [name, pool] : pools_) {
        json& entry = all[name];
        entry["groups"] = pool.placement_groups;
        entry["first"] = json::array();
        for (const auto& [number, osd] : pool.primary_osd_of_group) {
            entry["first"].push_back({number, osd});
        }
    }
    return plan::serialize_json(all);
}

CephPlacement CephPlacement::from_json_text(std::string_view text) {
    CephPlacement placement;
    const json all = plan::parse_json_or_discard(text);  // nothing comes of a team that is broken
    if (!all.is_object()) {
        return placement;
    }
    for (const auto& [name, entry] : all.items()) {
        Pool& pool = placement.pools_[name];
        pool.placement_groups = entry.at("groups").get<std::uint32_t>();
        for (const json& pair : entry.at("first")) {
            pool.primary_osd_of_group[pair.at(0).get<std::uint32_t>()] = pair.at(1).get<std::int32_t>();
        }
    }
    return placement;
}

bool CephPlacement::has_pool(const std::string& pool) const {
    const auto match = pools_.find(pool);
    return match != pools_.end() && match->second.placement_groups > 0 && !match->second.primary_osd_of_group.empty();
}

std::string CephPlacement::find_osd(const std::string& pool, const std::string& space, std::string_view object) const {
    if (!has_pool(pool)) {
        return {};
    }
    const Pool& entry = pools_.at(pool);
    const std::string key = space.empty() ? std::string(object) : space + '\037' + std::string(object);
    const auto first = entry.primary_osd_of_group.find(to_placement_group(hash_ceph_name(key), entry.placement_groups));
    return first == entry.primary_osd_of_group.end() || first->second < 0 ? std::string()
                                                                          : "osd." + std::to_string(first->second);
}

StripeLayout place_ceph_layout(std::string_view value, std::uint64_t inode, const CephPlacement& placement) {
    StripeLayout layout = parse_ceph_layout(value);
    const CephStripes stripes = parse_ceph_stripes(value);
    if (!placement.has_pool(stripes.pool)) {
        return layout;
    }
    const std::uint64_t blocks_of_object = std::max<std::uint64_t>(stripes.object / stripes.unit, 1);
    std::vector<std::string> by_object;
    LayoutComponent& known_part = layout.components.front();
    known_part.targets.clear();
    for (std::uint64_t block = 0; block < max_blocks; ++block) {
        const std::uint64_t row = block / stripes.count;
        const std::uint64_t object = row / blocks_of_object * stripes.count + block % stripes.count;
        while (by_object.size() <= object) {
            const std::string osd =
                placement.find_osd(stripes.pool, stripes.space, make_object_name(inode, by_object.size()));
            by_object.push_back(osd.empty() ? "?" : osd);
        }
        known_part.targets.push_back(by_object[object]);
    }
    known_part.end = max_blocks * stripes.unit;
    LayoutComponent& unknown_part = layout.components.emplace_back();
    unknown_part.start = layout.components.front().end;
    unknown_part.pattern = LayoutComponent::Pattern::foreign;
    unknown_part.pool = stripes.pool;
    return layout;
}

CephPlacement query_ceph_placement(std::chrono::milliseconds limit) {
    using Arguments = std::vector<std::string>;
    const Arguments pools_arguments{"osd", "pool", "ls", "detail"}, groups_arguments{"pg", "dump", "pgs_brief"};
    // A client that may not ask, or reaches no monitor, must not keep the run waiting.
    const auto ask = [limit](const Arguments& arguments) {
        const auto seconds = std::chrono::ceil<std::chrono::seconds>(limit).count();
        Arguments all{"ceph", "--connect-timeout", std::to_string(seconds), "--format", "json"};
        all.insert(all.end(), arguments.begin(), arguments.end());
        return records::run_and_read(all, longest_answer, limit);
    };
    const auto unknown = [](const Arguments& arguments, const std::string& why) {
        std::string command = "ceph";
        for (const std::string& word : arguments) {
            command += " " + word;
        }
        return CephPlacement(records::describe_failure(command, why));
    };
    const records::ProgramOutput pools = ask(pools_arguments);
    if (!pools.succeeded()) {
        return unknown(pools_arguments, pools.last_line());
    }
    const records::ProgramOutput groups = ask(groups_arguments);
    if (!groups.succeeded()) {
        return unknown(groups_arguments, groups.last_line());
    }
    try {
        return CephPlacement::from_command_outputs(pools.text, groups.text);
    } catch (const std::exception& reason) {
        return CephPlacement(std::string(reason.what()));
    }
}

}  // namespace sonde::layouts
