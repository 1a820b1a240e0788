// SPDX-License-Identifier: Apache-2.0
#include "system/parts.hpp"

namespace sonde::simulate {

using nlohmann::json;

Parts::Parts(std::string_view resolved_json) {
    constexpr const char* remedy = ": make one with System.to_json() of sonde.model.system, as `sonde simulate` does";
    system_ = json::parse(resolved_json, nullptr, false);
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

double number(const json& part, const char* member, double otherwise) {
    const auto found = part.find(member);
    return found != part.end() && found->is_number() ? found->get<double>() : otherwise;
}

double parameter(const json& part, const char* name, double otherwise) {
    const auto model = part.find("model");
    return model != part.end() ? number(*model, name, otherwise) : otherwise;
}

bool has_parameter(const json& part, const char* name) {
    const auto model = part.find("model");
    return model != part.end() && model->contains(name);
}

DirectedRate rate_of(const json& part, const char* member) {
    const auto found = part.find(member);
    if (found == part.end()) {
        return {};
    }
    if (found->is_number()) {
        return {found->get<double>(), found->get<double>()};
    }
    return {number(*found, "read", 0), number(*found, "write", 0)};
}

bool holds_data(const json& target) {
    const std::string kind = text(target, "kind");
    return kind != "mdt" && kind != "mgt" && kind != "metadata";
}

}  // namespace sonde::simulate
