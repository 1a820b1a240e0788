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
    /// Throws SiteError when the text is no resolved system, or has a device that lies on itself.
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
    /// Id of the only device that one lies on: of a slice, LUN or volume with one member. Empty: none, or several.
    static std::string below(const nlohmann::json& device);

 private:
    void refuse_circles() const;

    nlohmann::json system_;
    std::unordered_map<std::string, const nlohmann::json*> by_id_;
};

std::string text(const nlohmann::json& part, const char* member);  ///< empty when absent
std::vector<std::string> texts(const nlohmann::json& part, const char* member);

/// What a number may be: nothing of a machine is negative, and sums and products of these fit their types.
constexpr double most_bytes = 1e18, most_count = 1e9, most_rate = 1e18, least_rate = 1;

/// The number of a member, or `otherwise` where there is none. All of these throw SiteError, with the part and the
/// member, when a number lies outside of the borders.
double number(const nlohmann::json& part, const char* member, double otherwise, double least = 0,
              double most = most_bytes);
std::uint64_t bytes(const nlohmann::json& part, const char* member, std::uint64_t otherwise, double least = 0);
std::uint32_t count(const nlohmann::json& part, const char* member, std::uint32_t otherwise, double least = 0);
Time duration(const nlohmann::json& part, const char* member, double otherwise_s);  ///< to `longest_s`
/// The same of the table `model`.
double parameter(const nlohmann::json& part, const char* name, double otherwise);
std::uint64_t parameter_bytes(const nlohmann::json& part, const char* name, double otherwise, double least = 0);
std::uint32_t parameter_count(const nlohmann::json& part, const char* name, std::uint32_t otherwise, double least = 0);
Time parameter_duration(const nlohmann::json& part, const char* name, double otherwise_s);
double parameter_rate(const nlohmann::json& part, const char* name, double otherwise);  ///< 0, or bytes/s from 1
bool has_parameter(const nlohmann::json& part, const char* name);
/// Zeros where it says nothing; otherwise at least a byte a second.
DirectedRate rate_of(const nlohmann::json& part, const char* member = "rate");
/// A target that holds file data, not names.
bool holds_data(const nlohmann::json& target);

}  // namespace sonde::simulate
