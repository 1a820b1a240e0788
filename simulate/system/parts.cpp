// SPDX-License-Identifier: Apache-2.0
#include "system/parts.hpp"

#include <array>
#include <cstdio>

namespace sonde::simulate {

using nlohmann::json;

namespace {

/// The table `model` of a part; an empty one where it has none.
const json& model_of(const json& part) {
    static const json none = json::object();
    const auto found = part.find("model");
    return found != part.end() && found->is_object() ? *found : none;
}

/// The number of a member of a part, or of a table in it, within its borders.
double limited(const json& part, const json& table, const char* member, double otherwise, double least, double most) {
    const auto found = table.find(member);
    if (found == table.end() || !found->is_number()) {
        return otherwise;
    }
    const auto value = found->get<double>();
    if (value >= least && value <= most) {
        return value;
    }
    std::array<char, 160> said{};
    std::snprintf(said.data(), said.size(), "%s of \"%.64s\" is %g; it must be from %g to %g", member,
                  text(part, "id").c_str(), value, least, most);
    throw SiteError(std::string("the resolved system cannot be simulated: ") + said.data());
}

/// 0 is no limit; less than a byte a second would be one that nothing ever passes.
double rate_in(const json& part, const json& table, const char* member, double otherwise) {
    const double value = limited(part, table, member, otherwise, 0, most_rate);
    return value == 0 ? 0 : limited(part, table, member, otherwise, least_rate, most_rate);
}

}  // namespace

Parts::Parts(std::string_view resolved_json) : system_(json::parse(resolved_json, nullptr, false)) {
    constexpr const char* remedy = ": make one with System.to_json() of sonde.model.system, as `sonde simulate` does";
    if (!system_.is_object() || text(system_, "schema") != "sonde-system-resolved/1") {
        throw SiteError(std::string("this is no resolved system (schema sonde-system-resolved/1)") + remedy);
    }
    for (const auto& [kind, parts] : system_.items()) {
        for (const json& part : parts.is_array() ? parts : json::array()) {
            if (!part.is_object() || text(part, "id").empty()) {
                throw SiteError("the resolved system has a part without an id among its " + kind + remedy);
            }
        }
    }
    for (const auto& [kind, parts] : system_.items()) {
        for (std::size_t i = 0; parts.is_array() && i < parts.size(); ++i) {
            by_id_.emplace(text(parts[i], "id"), &parts[i]);
        }
    }
    refuse_circles();
}

std::string Parts::below(const json& device) {
    for (const char* member : {"on", "raid_group", "members"}) {
        const std::vector<std::string> all = texts(device, member);
        if (all.size() == 1) {
            return all.front();
        }
    }
    return {};
}

void Parts::refuse_circles() const {
    constexpr int deepest = 64;
    for (const auto& [kind, parts] : system_.items()) {
        for (const json& part : list(kind.c_str())) {
            int steps = 0;
            for (const json* at = sought(below(part)); at != nullptr; at = sought(below(*at))) {
                if (at == &part || ++steps > deepest) {
                    throw SiteError("the resolved system cannot be simulated: \"" + text(part, "id") +
                                    (at == &part ? "\" lies on itself" : "\" lies on too many others"));
                }
            }
        }
    }
}

std::string Parts::id() const {
    return text(system_, "id");
}

const json& Parts::list(const char* kind) const {
    static const json none = json::array();
    const auto found = system_.find(kind);
    return found != system_.end() && found->is_array() ? *found : none;
}

const json* Parts::sought(const std::string& id) const {
    const auto found = by_id_.find(id);
    return found == by_id_.end() ? nullptr : found->second;
}

const json& Parts::named(const std::string& id) const {
    if (const json* found = sought(id)) {
        return *found;
    }
    throw SiteError("system " + this->id() + " has no part \"" + id + "\"");
}

std::string text(const json& part, const char* member) {
    const auto found = part.find(member);
    return found != part.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::vector<std::string> texts(const json& part, const char* member) {
    const auto found = part.find(member);
    if (found == part.end()) {
        return {};
    }
    return found->is_string() ? std::vector<std::string>{found->get<std::string>()}
                              : found->get<std::vector<std::string>>();
}

double number(const json& part, const char* member, double otherwise, double least, double most) {
    return limited(part, part, member, otherwise, least, most);
}

std::uint64_t bytes(const json& part, const char* member, std::uint64_t otherwise, double least) {
    return static_cast<std::uint64_t>(number(part, member, static_cast<double>(otherwise), least));
}

std::uint32_t count(const json& part, const char* member, std::uint32_t otherwise, double least) {
    return static_cast<std::uint32_t>(number(part, member, otherwise, least, most_count));
}

Time duration(const json& part, const char* member, double otherwise_s) {
    return time_of(number(part, member, otherwise_s, 0, longest_s));
}

double parameter(const json& part, const char* name, double otherwise) {
    return limited(part, model_of(part), name, otherwise, 0, most_bytes);
}

std::uint64_t parameter_bytes(const json& part, const char* name, double otherwise, double least) {
    return static_cast<std::uint64_t>(limited(part, model_of(part), name, otherwise, least, most_bytes));
}

std::uint32_t parameter_count(const json& part, const char* name, std::uint32_t otherwise, double least) {
    return static_cast<std::uint32_t>(limited(part, model_of(part), name, otherwise, least, most_count));
}

Time parameter_duration(const json& part, const char* name, double otherwise_s) {
    return time_of(limited(part, model_of(part), name, otherwise_s, 0, longest_s));
}

double parameter_rate(const json& part, const char* name, double otherwise) {
    return rate_in(part, model_of(part), name, otherwise);
}

bool has_parameter(const json& part, const char* name) {
    return model_of(part).contains(name);
}

DirectedRate rate_of(const json& part, const char* member) {
    const auto found = part.find(member);
    if (found == part.end()) {
        return {};
    }
    if (found->is_number()) {
        const double both = rate_in(part, part, member, 0);
        return {both, both};
    }
    return {rate_in(part, *found, "read", 0), rate_in(part, *found, "write", 0)};
}

bool holds_data(const json& target) {
    const std::string kind = text(target, "kind");
    return kind != "mdt" && kind != "mgt" && kind != "metadata";
}

}  // namespace sonde::simulate
