// SPDX-License-Identifier: Apache-2.0
// The parts of a resolved system by kind and by id, and how their members are read.
#pragma once

#include "system/site.hpp"

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace sonde::simulate {

class Parts {
 public:
    /// Throws SiteError when the text is no resolved system.
    explicit Parts(std::string_view resolved_json);
    Parts(const Parts&) = delete;
    Parts& operator=(const Parts&) = delete;

    std::string id() const;
    /// Parts of a kind; an empty list when there are none.
    const nlohmann::json& list(const char* kind) const;
    /// The part of that id, whatever its kind. Throws SiteError when there is none.
    const nlohmann::json& named(const std::string& id) const;
    /// The part of that id, or null.
    const nlohmann::json* sought(const std::string& id) const;

 private:
    nlohmann::json system_;
    std::unordered_map<std::string, const nlohmann::json*> by_id_;
};

std::string text(const nlohmann::json& part, const char* member);  ///< empty when absent
std::vector<std::string> texts(const nlohmann::json& part, const char* member);
double number(const nlohmann::json& part, const char* member, double otherwise);
/// Of the table `model`.
double parameter(const nlohmann::json& part, const char* name, double otherwise);
bool has_parameter(const nlohmann::json& part, const char* name);
/// Zeros where it says nothing.
DirectedRate rate_of(const nlohmann::json& part, const char* member = "rate");
/// A target that holds file data, not names.
bool holds_data(const nlohmann::json& target);

}  // namespace sonde::simulate
