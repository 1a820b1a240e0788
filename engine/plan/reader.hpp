// SPDX-License-Identifier: Apache-2.0
// Reads one JSON object member by member, remembers where it stands, and says in words what is wrong.
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
struct Choice {
    const char* name;
    T value;
};

class Reader {
 public:
    Reader(const nlohmann::json& value, std::string path) : value_(&value), path_(std::move(path)) {}

    const std::string& path() const { return path_; }
    bool has(const std::string& key) const;
    /// Refuses when there is none, saying that it must be `wanted`.
    const nlohmann::json& value(const std::string& key, const std::string& wanted = {}) const;

    std::string text(const char* key) const;  ///< required
    std::string text(const char* key, const std::string& fallback) const;
    std::string identifier(const char* key) const;  ///< letters, digits, '_', '.', '-'
    bool boolean(const char* key, bool fallback) const;
    /// These four twice: none when it is not there, or the fallback.
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
    std::uint64_t seed(std::uint64_t fallback) const;                      ///< the member "seed"
    std::int64_t self_integer(std::int64_t low, std::int64_t high) const;  ///< this value itself

    Reader object(const char* key) const;
    Reader object_or_empty(const char* key) const;
    std::vector<Reader> array(const char* key) const;       ///< not empty
    std::vector<Reader> list(const char* key) const;        ///< may be empty or absent
    std::vector<std::string> texts(const char* key) const;  ///< list of texts; may be empty or absent
    std::vector<std::pair<std::string, nlohmann::json>> members() const;

    /// A text that is one of these names. Refuses others, with all of them.
    std::string one_of(const char* key, std::span<const std::string_view> names) const;
    template <class T, std::size_t N>
    T choice(const char* key, const Choice<T> (&choices)[N]) const {
        std::array<std::string_view, N> names;
        std::transform(choices, choices + N, names.begin(), [](const Choice<T>& choice) { return choice.name; });
        const std::string found = one_of(key, names);
        // Others are refused: what is none of those before it is the last one.
        return std::find_if(choices, choices + N - 1, [&](const Choice<T>& choice) { return found == choice.name; })
            ->value;
    }
    template <class T, std::size_t N>
    T choice(const char* key, const Choice<T> (&choices)[N], T fallback) const {
        return has(key) ? choice(key, choices) : fallback;
    }

    /// Refuses members that nobody asked for, with the nearest known name. `also` are known but read elsewhere.
    void done(std::initializer_list<const char*> also = {}) const;
    [[noreturn]] void fail(const std::string& key, const std::string& complaint) const;

 private:
    static std::string shown(const nlohmann::json& value);
    std::string place(const std::string& key) const;

    const nlohmann::json* value_;
    std::string path_;
    mutable std::set<std::string> known_;
};

}  // namespace sonde::plan
