// SPDX-License-Identifier: Apache-2.0
// The parts of a resolved system by kind and by id, and functions that read their members.
#pragma once

#include "system/system_model.hpp"

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace sonde::simulate {

class SystemParts {
 public:
    /// Throws SystemModelError when the text is no resolved system, or has a device that is on itself.
    explicit SystemParts(std::string_view resolved_json);
    SystemParts(const SystemParts&) = delete;
    SystemParts& operator=(const SystemParts&) = delete;

    std::string system_id() const;
    /// All parts of a kind; an empty list when there are none.
    const nlohmann::json& list(const char* kind) const;
    /// The part of that id, of any kind. Throws SystemModelError when there is none.
    const nlohmann::json& get(const std::string& system_id) const;
    /// The part of that id, or null.
    const nlohmann::json* find(const std::string& system_id) const;
    /// Id of the only device below a slice, LUN or volume. Empty: none, or several.
    static std::string find_underlying_device(const nlohmann::json& device);

 private:
    void check_no_cycles() const;

    nlohmann::json system_;
    std::unordered_map<std::string, const nlohmann::json*> by_id_;
};

std::string get_text(const nlohmann::json& part, const char* member);  ///< empty when absent
std::vector<std::string> get_texts(const nlohmann::json& part, const char* member);

/// Limits of numbers: none is negative, and sums and products of these fit their types.
constexpr double max_bytes = 1e18, max_count = 1e9, max_rate = 1e18, min_rate = 1;

/// The number of a member, or `fallback` where it is absent. All of these throw SystemModelError, with the part and the
/// member, when the number is outside of the limits.
double get_number(const nlohmann::json& part, const char* member, double fallback, double minimum = 0,
                  double maximum = max_bytes);
std::uint64_t get_bytes(const nlohmann::json& part, const char* member, std::uint64_t fallback, double minimum = 0);
std::uint32_t get_count(const nlohmann::json& part, const char* member, std::uint32_t fallback, double minimum = 0);
Time get_duration(const nlohmann::json& part, const char* member, double fallback_s);  ///< to `longest_s`
/// The same for a member of the table `model`.
double get_parameter(const nlohmann::json& part, const char* name, double fallback);
std::uint64_t get_parameter_bytes(const nlohmann::json& part, const char* name, double fallback, double minimum = 0);
std::uint32_t get_parameter_count(const nlohmann::json& part, const char* name, std::uint32_t fallback,
                                  double minimum = 0);
Time get_parameter_duration(const nlohmann::json& part, const char* name, double fallback_s);
double get_parameter_rate(const nlohmann::json& part, const char* name, double fallback);  ///< 0, or bytes/s from 1
bool has_parameter(const nlohmann::json& part, const char* name);
/// Zeros where the member is absent; otherwise at least 1 byte/s.
DirectedRate read_directed_rate(const nlohmann::json& part, const char* member = "rate");
/// Whether a target stores file data, not metadata.
bool holds_data(const nlohmann::json& target);

}  // namespace sonde::simulate
