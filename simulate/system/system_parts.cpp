// SPDX-License-Identifier: Apache-2.0
#include "system/system_parts.hpp"

#include <array>
#include <cstdio>

namespace sonde::simulate {

using nlohmann::json;

namespace {

/// The table `model` of a part; an empty one where it is absent.
const json& get_model_table(const json& part) {
    static const json empty_table = json::object();
    const auto table = part.find("model");
    return table != part.end() && table->is_object() ? *table : empty_table;
}

/// The number of a member of a part, or of a table in it. Throws SystemModelError outside of the limits.
double read_number(const json& part, const json& table, const char* member, double fallback, double minimum,
                   double maximum) {
    const auto number = table.find(member);
    if (number == table.end() || !number->is_number()) {
        return fallback;
    }
    const auto value = number->get<double>();
    if (value >= minimum && value <= maximum) {
        return value;
    }
    std::array<char, 160> message{};
    std::snprintf(message.data(), message.size(), "%s of \"%.64s\" is %g; it must be from %g to %g", member,
                  get_text(part, "id").c_str(), value, minimum, maximum);
    throw SystemModelError(std::string("the resolved system cannot be simulated: ") + message.data());
}

/// A rate of 0 means no limit. A limit below 1 byte/s would stop all progress.
double read_rate(const json& part, const json& table, const char* member, double fallback) {
    const double value = read_number(part, table, member, fallback, 0, max_rate);
    return value == 0 ? 0 : read_number(part, table, member, fallback, min_rate, max_rate);
}

}  // namespace

SystemParts::SystemParts(std::string_view resolved_json) : system_(json::parse(resolved_json, nullptr, false)) {
    constexpr const char* remedy = ": make one with System.to_json() of sonde.model.system, as `sonde simulate` does";
    if (!system_.is_object() || get_text(system_, "schema") != "sonde-system-resolved/2") {
        throw SystemModelError(std::string("this is no resolved system (schema sonde-system-resolved/2)") + remedy);
    }
    for (const auto& [kind, parts] : system_.items()) {
        for (const json& part : parts.is_array() ? parts : json::array()) {
            if (!part.is_object() || get_text(part, "id").empty()) {
                throw SystemModelError("the resolved system has a part without an id among its " + kind + remedy);
            }
        }
    }
    for (const auto& [kind, parts] : system_.items()) {
        for (std::size_t i = 0; parts.is_array() && i < parts.size(); ++i) {
            by_id_.emplace(get_text(parts[i], "id"), &parts[i]);
        }
    }
    check_no_cycles();
}

std::string SystemParts::find_underlying_device(const json& device) {
    for (const char* member : {"on", "raid_group", "members"}) {
        const std::vector<std::string> devices = get_texts(device, member);
        if (devices.size() == 1) {
            return devices.front();
        }
    }
    return {};
}

void SystemParts::check_no_cycles() const {
    constexpr int max_depth = 64;
    for (const auto& [kind, parts] : system_.items()) {
        for (const json& part : list(kind.c_str())) {
            int steps = 0;
            for (const json* device = find(find_underlying_device(part)); device != nullptr;
                 device = find(find_underlying_device(*device))) {
                if (device == &part || ++steps > max_depth) {
                    throw SystemModelError("the resolved system cannot be simulated: \"" + get_text(part, "id") +
                                           (device == &part ? "\" lies on itself" : "\" lies on too many others"));
                }
            }
        }
    }
}

std::string SystemParts::system_id() const {
    return get_text(system_, "id");
}

const json& SystemParts::list(const char* kind) const {
    static const json no_parts = json::array();
    const auto parts = system_.find(kind);
    return parts != system_.end() && parts->is_array() ? *parts : no_parts;
}

const json* SystemParts::find(const std::string& id) const {
    const auto entry = by_id_.find(id);
    return entry == by_id_.end() ? nullptr : entry->second;
}

const json& SystemParts::get(const std::string& id) const {
    if (const json* part = find(id)) {
        return *part;
    }
    throw SystemModelError("system " + this->system_id() + " has no part \"" + id + "\"");
}

std::string get_text(const json& part, const char* member) {
    const auto value = part.find(member);
    return value != part.end() && value->is_string() ? value->get<std::string>() : std::string();
}

std::vector<std::string> get_texts(const json& part, const char* member) {
    const auto value = part.find(member);
    if (value == part.end()) {
        return {};
    }
    return value->is_string() ? std::vector<std::string>{value->get<std::string>()}
                              : value->get<std::vector<std::string>>();
}

double get_number(const json& part, const char* member, double fallback, double minimum, double maximum) {
    return read_number(part, part, member, fallback, minimum, maximum);
}

std::uint64_t get_bytes(const json& part, const char* member, std::uint64_t fallback, double minimum) {
    return static_cast<std::uint64_t>(get_number(part, member, static_cast<double>(fallback), minimum));
}

std::uint32_t get_count(const json& part, const char* member, std::uint32_t fallback, double minimum) {
    return static_cast<std::uint32_t>(get_number(part, member, fallback, minimum, max_count));
}

Time get_duration(const json& part, const char* member, double fallback_s) {
    return seconds_to_time(get_number(part, member, fallback_s, 0, longest_s));
}

double get_parameter(const json& part, const char* name, double fallback) {
    return read_number(part, get_model_table(part), name, fallback, 0, max_bytes);
}

std::uint64_t get_parameter_bytes(const json& part, const char* name, double fallback, double minimum) {
    return static_cast<std::uint64_t>(read_number(part, get_model_table(part), name, fallback, minimum, max_bytes));
}

std::uint32_t get_parameter_count(const json& part, const char* name, std::uint32_t fallback, double minimum) {
    return static_cast<std::uint32_t>(read_number(part, get_model_table(part), name, fallback, minimum, max_count));
}

Time get_parameter_duration(const json& part, const char* name, double fallback_s) {
    return seconds_to_time(read_number(part, get_model_table(part), name, fallback_s, 0, longest_s));
}

double get_parameter_rate(const json& part, const char* name, double fallback) {
    return read_rate(part, get_model_table(part), name, fallback);
}

bool has_parameter(const json& part, const char* name) {
    return get_model_table(part).contains(name);
}

DirectedRate read_directed_rate(const json& part, const char* member) {
    const auto rate = part.find(member);
    if (rate == part.end()) {
        return {};
    }
    if (rate->is_number()) {
        const double both = read_rate(part, part, member, 0);
        return {both, both};
    }
    return {read_rate(part, *rate, "read", 0), read_rate(part, *rate, "write", 0)};
}

bool holds_data(const json& target) {
    const std::string kind = get_text(target, "kind");
    return kind != "mdt" && kind != "mgt" && kind != "metadata";
}

}  // namespace sonde::simulate
