// SPDX-License-Identifier: Apache-2.0
// Reads one JSON object member by member. Errors name the path of the member.
#pragma once

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sonde::plan {

template <class T>
struct NamedValue {
    const char* name;
    T value;
};

class Reader {
 public:
    Reader(const nlohmann::json& value, std::string path) : value_(&value), path_(std::move(path)) {}

    const std::string& path() const { return path_; }
    bool has(const std::string& key) const;
    /// Refuses when there is none, saying that it must be `wanted`.
    const nlohmann::json& value(const std::string& key, const std::string& expectation = {}) const;

    std::string text(const char* key) const;  ///< required
    std::string text(const char* key, const std::string& fallback) const;
    std::string identifier(const char* key) const;  ///< letters, digits, '_', '.', '-'
    bool boolean(const char* key, bool fallback) const;
    /// Two overloads each: absent members give nothing, or the fallback.
    std::optional<std::int64_t> integer(const char* key, std::int64_t low, std::int64_t high) const;
    std::int64_t integer(const char* key, std::int64_t fallback, std::int64_t low, std::int64_t high) const;
    std::optional<double> number(const char* key, double low, double high) const;
    double number(const char* key, double fallback, double low, double high) const;
    std::optional<std::uint64_t> bytes(const char* key) const;
    std::uint64_t bytes(const char* key, std::uint64_t fallback) const;
    std::optional<std::int64_t> duration(const char* key) const;  ///< ns
    std::int64_t duration(const char* key, std::int64_t fallback) const;
    double rate(const char* key) const;  ///< bytes per second
    std::uint64_t count(const char* key, std::uint64_t fallback, std::int64_t low, std::int64_t high) const;
    std::uint64_t seed(std::uint64_t fallback) const;  ///< the member "seed"
    std::int64_t self_integer(std::int64_t low,
                              std::int64_t high) const;  ///< the value of this reader, not of a member

    Reader object(const char* key) const;
    Reader object_or_empty(const char* key) const;
    std::vector<Reader> array(const char* key) const;       ///< not empty
    std::vector<Reader> list(const char* key) const;        ///< may be empty or absent
    std::vector<std::string> texts(const char* key) const;  ///< list of texts; may be empty or absent
    std::vector<std::pair<std::string, nlohmann::json>> members() const;

    /// A text that is one of `names`. Throws for others, with a list of all names.
    std::string read_name(const char* key, std::span<const std::string_view> names) const;
    template <class T, std::size_t N>
    T choice(const char* key, const NamedValue<T> (&choices)[N]) const {
        std::array<std::string_view, N> names;
        std::transform(choices, choices + N, names.begin(), [](const NamedValue<T>& choice) { return choice.name; });
        const std::string name = read_name(key, names);
        // read_name() rejects other names, so the last choice needs no comparison.
        return std::find_if(choices, choices + N - 1, [&](const NamedValue<T>& choice) { return name == choice.name; })
            ->value;
    }
    template <class T, std::size_t N>
    T choice(const char* key, const NamedValue<T> (&choices)[N], T fallback) const {
        return has(key) ? choice(key, choices) : fallback;
    }

    /// Throws for members that were not read, with the most similar known name. `also` are known but read elsewhere.
    void reject_unknown_members(std::initializer_list<const char*> also = {}) const;
    [[noreturn]] void fail(const std::string& key, const std::string& complaint) const;

 private:
    static std::string quote(const nlohmann::json& value);
    std::string member_path(const std::string& key) const;

    const nlohmann::json* value_;
    std::string path_;
    mutable std::set<std::string> known_members_;
};

}  // namespace sonde::plan
