// SPDX-License-Identifier: Apache-2.0
// Kinds of values in a plan. Each has `read` (a member of a JSON object), `resolve` (the value in base units), `show`
// (the value as people write it, for defaults) and `form` (JSON Schema).
#pragma once

#include "plan/choices.hpp"
#include "plan/declaration.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace sonde::plan {

/// A kind whose values have the same form in the resolved plan and in defaults.
template <class T>
struct PlainKind {
    static ordered_json resolve(const T& value) { return value; }
    static ordered_json to_default(const T& value) { return value; }
};

struct FlagKind : PlainKind<bool> {
    static bool read(const Reader& in, const char* key) { return in.boolean(key, false); }
    static ordered_json json_schema() { return {{"type", "boolean"}}; }
};

/// Limits of INT64_MIN and INT64_MAX mean none.
struct IntegerKind : PlainKind<std::int64_t> {
    std::int64_t low = 0, high = INT64_MAX;
    IntegerKind(std::int64_t low_limit, std::int64_t high_limit) : low(low_limit), high(high_limit) {}
    std::int64_t read(const Reader& in, const char* key) const { return in.integer(key, low, low, high); }
    ordered_json json_schema() const;
};

struct NumberKind {
    double low = 0, high = 0;
    double read(const Reader& in, const char* key) const { return in.number(key, low, low, high); }
    static ordered_json resolve(double value) { return value; }
    static ordered_json to_default(double value);  ///< without decimals where there are none
    ordered_json json_schema() const;
};

struct BytesKind {
    static std::uint64_t read(const Reader& in, const char* key) { return in.bytes(key, 0); }
    static ordered_json resolve(std::uint64_t bytes) { return bytes; }
    static ordered_json to_default(std::uint64_t bytes);
    static ordered_json json_schema() { return {{"$ref", "#/$defs/bytes"}}; }
};

struct DurationKind {
    bool more_than_zero = false;
    std::int64_t read(const Reader& in, const char* key) const;
    static ordered_json resolve(std::int64_t ns) { return std::to_string(ns) + "ns"; }
    static ordered_json to_default(std::int64_t ns);
    static ordered_json json_schema() { return {{"$ref", "#/$defs/duration"}}; }
};

struct RateKind : PlainKind<double> {
    static double read(const Reader& in, const char* key) { return in.rate(key); }
    static ordered_json json_schema() { return {{"$ref", "#/$defs/rate"}}; }
};

/// A time as seconds since 1970, in nanoseconds.
struct TimeKind {
    static std::int64_t read(const Reader& in, const char* key);
    static ordered_json resolve(std::int64_t ns) { return static_cast<double>(ns) / 1e9; }
    static ordered_json json_schema();
};

/// The required form of a text. The reader applies `holds`; the schema states the rest.
struct TextRule {
    bool (*accepts)(const std::string& text) = nullptr;
    const char* error_text = "";
    const char* pattern = nullptr;
    int min_length = 0, max_length = 0;  ///< 0 = not stated
    ordered_json json_schema() const;
};

struct TextKind : PlainKind<std::string> {
    TextRule rule;
    TextKind() = default;
    explicit TextKind(const TextRule& text_rule) : rule(text_rule) {}
    std::string read(const Reader& in, const char* key) const;
    ordered_json json_schema() const { return rule.json_schema(); }
};

/// Letters, digits, '_', '.', '-'.
struct IdentifierKind : PlainKind<std::string> {
    static std::string read(const Reader& in, const char* key) { return in.identifier(key); }
    static ordered_json json_schema() { return {{"type", "string"}, {"pattern", "^[A-Za-z0-9_.-]+$"}}; }
};

/// A list of texts. The complaint of the rule follows the text: "holds "x", which …".
struct TextsKind : PlainKind<std::vector<std::string>> {
    TextRule rule;
    explicit TextsKind(const TextRule& text_rule) : rule(text_rule) {}
    std::vector<std::string> read(const Reader& in, const char* key) const;
    ordered_json json_schema() const { return {{"type", "array"}, {"items", rule.json_schema()}}; }
};

/// A list of texts that only people read.
struct CommentKind : PlainKind<std::vector<std::string>> {
    static std::vector<std::string> read(const Reader& /*in*/, const char* /*key*/) { return {}; }
    static ordered_json json_schema() { return {{"type", "array"}, {"items", {{"type", "string"}}}}; }
};

struct IntegersKind : PlainKind<std::vector<int>> {
    std::int64_t high = 1 << 30;
    bool may_be_empty = true;
    explicit IntegersKind(bool empty_allowed) : may_be_empty(empty_allowed) {}
    std::vector<int> read(const Reader& in, const char* key) const;
    ordered_json json_schema() const;
};

/// A text with one of some names.
struct ListedNameKind : PlainKind<std::string> {
    std::vector<std::string_view> names;
    explicit ListedNameKind(std::vector<std::string_view> all_names) : names(std::move(all_names)) {}
    std::string read(const Reader& in, const char* key) const { return in.read_name(key, names); }
    ordered_json json_schema() const { return {{"enum", names}}; }
};

/// A text that stands for a value (choices.hpp).
template <class T, std::size_t N>
struct ChoiceKind {
    const NamedValue<T> (&values)[N];
    T read(const Reader& in, const char* key) const { return in.choice(key, values); }
    ordered_json resolve(T value) const { return get_value_name(values, value); }
    ordered_json to_default(T value) const { return get_value_name(values, value); }
    ordered_json json_schema() const {
        ordered_json names = ordered_json::array();
        for (const NamedValue<T>& choice : values) {
            names.push_back(choice.name);
        }
        return {{"enum", names}};
    }
};
template <class T, std::size_t N>
ChoiceKind<T, N> choice(const NamedValue<T> (&values)[N]) {
    return {values};
}

/// The operation of a phase on data, or on a tree.
struct OperationKind {
    bool on_tree = false;
    Op read(const Reader& in, const char* key) const;
    static ordered_json resolve(Op op) { return operation_name(op); }
    static ordered_json to_default(Op op) { return operation_name(op); }
    static ordered_json json_schema();  ///< all operations, once each
};

/// Names of statx fields.
struct StatxFieldsKind {
    static std::uint32_t read(const Reader& in, const char* key);
    static ordered_json resolve(std::uint32_t mask);
    static ordered_json to_default(std::uint32_t mask) { return resolve(mask); }
    static ordered_json json_schema();
};

/// Texts by name.
struct HintsKind : PlainKind<std::map<std::string, std::string>> {
    static std::map<std::string, std::string> read(const Reader& in, const char* key);
    static ordered_json json_schema();
};

/// Factors by task number.
struct TaskFactorsKind {
    static std::map<int, double> read(const Reader& in, const char* key);
    static ordered_json resolve(const std::map<int, double>& factors);
    static ordered_json to_default(const std::map<int, double>& factors) { return resolve(factors); }
    static ordered_json json_schema();
};

}  // namespace sonde::plan
