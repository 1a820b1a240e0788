// SPDX-License-Identifier: Apache-2.0
#include "plan/value_kinds.hpp"

#include "plan/json_io.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace sonde::plan {
namespace {

constexpr double latest_time = 9e9;  // seconds since 1970; a time in ns still fits into 64 bits
constexpr double min_factor = 1e-6;
constexpr double max_factor = 1e6;

struct UnitStep {
    const char* name;
    std::uint64_t factor;
};
constexpr std::array<UnitStep, 4> binary_units{
    {{"TiB", 1ULL << 40U}, {"GiB", 1ULL << 30U}, {"MiB", 1ULL << 20U}, {"KiB", 1ULL << 10U}}};
constexpr std::array<UnitStep, 4> duration_units{{{"s", 1'000'000'000}, {"ms", 1'000'000}, {"us", 1000}, {"ns", 1}}};

/// A quantity in the largest unit in which it is whole; zero without unit.
template <std::size_t N>
ordered_json format_with_unit(std::uint64_t value, const std::array<UnitStep, N>& units) {
    for (const UnitStep& unit : units) {
        if (value > 0 && value % unit.factor == 0) {
            return std::to_string(value / unit.factor) + unit.name;
        }
    }
    return value;
}

bool is_field_group(std::uint32_t mask) {
    return mask == STATX_BASIC_STATS || mask == (STATX_BASIC_STATS | STATX_BTIME);
}

}  // namespace

ordered_json IntegerKind::json_schema() const {
    ordered_json form{{"type", "integer"}};
    if (low != INT64_MIN) {
        form["minimum"] = low;
    }
    if (high != INT64_MAX) {
        form["maximum"] = high;
    }
    return form;
}

ordered_json NumberKind::to_default(double value) {
    return value == std::floor(value) && std::abs(value) < 1e15 ? ordered_json(std::llround(value))
                                                                : ordered_json(value);
}

ordered_json NumberKind::json_schema() const {
    return {{"type", "number"}, {"minimum", to_default(low)}, {"maximum", to_default(high)}};
}

ordered_json BytesKind::to_default(std::uint64_t bytes) {
    return format_with_unit(bytes, binary_units);
}

std::int64_t DurationKind::read(const Reader& in, const char* key) const {
    in.value(key, "a duration such as \"10s\"");
    const std::int64_t ns = in.duration(key, 0);
    if (more_than_zero && ns == 0) {
        in.fail(key, "must be more than zero");
    }
    return ns;
}

ordered_json DurationKind::to_default(std::int64_t ns) {
    return format_with_unit(static_cast<std::uint64_t>(ns), duration_units);
}

std::int64_t TimeKind::read(const Reader& in, const char* key) {
    return std::llround(in.number(key, 0, 0, latest_time) * 1e9);
}

ordered_json TimeKind::json_schema() {
    return NumberKind{0, latest_time}.json_schema();
}

ordered_json TextRule::json_schema() const {
    ordered_json form{{"type", "string"}};
    if (min_length > 0) {
        form["minLength"] = min_length;
    }
    if (max_length > 0) {
        form["maxLength"] = max_length;
    }
    if (pattern != nullptr) {
        form["pattern"] = pattern;
    }
    return form;
}

std::string TextKind::read(const Reader& in, const char* key) const {
    std::string text = in.text(key);
    if (rule.accepts != nullptr && !rule.accepts(text)) {
        in.fail(key, rule.error_text);
    }
    return text;
}

std::vector<std::string> TextsKind::read(const Reader& in, const char* key) const {
    std::vector<std::string> texts = in.texts(key);
    for (const std::string& text : texts) {
        if (!rule.accepts(text)) {
            in.fail(key, "holds \"" + text + "\", which " + rule.error_text);
        }
    }
    return texts;
}

std::vector<int> IntegersKind::read(const Reader& in, const char* key) const {
    std::vector<int> values;
    for (const Reader& entry : may_be_empty ? in.list(key) : in.array(key)) {
        values.push_back(static_cast<int>(entry.self_integer(0, high)));
    }
    return values;
}

ordered_json IntegersKind::json_schema() const {
    return {{"type", "array"}, {"items", IntegerKind(0, high).json_schema()}};
}

Op OperationKind::read(const Reader& in, const char* key) const {
    return find_operation(in.read_name(key, list_operation_names(on_tree)), on_tree).value();
}

ordered_json OperationKind::json_schema() {
    std::vector<std::string_view> names = list_operation_names(false);
    for (const std::string_view name : list_operation_names(true)) {
        if (std::find(names.begin(), names.end(), name) == names.end()) {
            names.push_back(name);
        }
    }
    return {{"enum", names}};
}

std::uint32_t StatxFieldsKind::read(const Reader& in, const char* key) {
    std::uint32_t mask = 0;
    std::string names;
    for (const auto& field : choices::statx_fields) {
        names += (names.empty() ? "" : ", ") + std::string(field.name);
    }
    for (const nlohmann::json& name : in.value(key)) {
        const auto* row = std::find_if(
            std::begin(choices::statx_fields), std::end(choices::statx_fields),
            [&name](const auto& field) { return name.is_string() && name.get<std::string>() == field.name; });
        if (row == std::end(choices::statx_fields)) {
            in.fail(key, "holds " + serialize_json(name, JsonEncoding::strict_utf8) + ", which is none of " + names);
        }
        mask |= row->value;
    }
    return mask;
}

ordered_json StatxFieldsKind::resolve(std::uint32_t mask) {
    ordered_json names = ordered_json::array();
    for (const auto& field : choices::statx_fields) {
        if (!is_field_group(field.value) && (mask & field.value) != 0) {
            names.push_back(field.name);
        }
    }
    return names;
}

ordered_json StatxFieldsKind::json_schema() {
    return {{"type", "array"}, {"items", choice(choices::statx_fields).json_schema()}};
}

std::map<std::string, std::string> HintsKind::read(const Reader& in, const char* key) {
    std::map<std::string, std::string> hints;
    for (const auto& [name, value] : in.object(key).members()) {
        if (!value.is_string()) {
            in.fail(std::string(key) + "." + name, "must be text");
        }
        hints[name] = value.get<std::string>();
    }
    return hints;
}

ordered_json HintsKind::json_schema() {
    return {{"type", "object"}, {"additionalProperties", {{"type", "string"}}}};
}

std::map<int, double> TaskFactorsKind::read(const Reader& in, const char* key) {
    std::map<int, double> factors;
    for (const auto& [name, value] : in.object(key).members()) {
        int task = -1;
        const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), task);
        const double factor = value.is_number() ? value.get<double>() : 0;
        if (error != std::errc() || end != name.data() + name.size() || task < 0 || !(factor >= min_factor) ||
            !(factor <= max_factor)) {
            in.fail(std::string(key) + "." + name, "must be a task number with a factor from 1e-6 to 1e6");
        }
        factors[task] = factor;
    }
    return factors;
}

ordered_json TaskFactorsKind::resolve(const std::map<int, double>& factors) {
    ordered_json members = ordered_json::object();
    for (const auto& [task, factor] : factors) {
        members[std::to_string(task)] = factor;
    }
    return members;
}

ordered_json TaskFactorsKind::json_schema() {
    return {{"type", "object"}, {"additionalProperties", NumberKind{min_factor, max_factor}.json_schema()}};
}

}  // namespace sonde::plan
