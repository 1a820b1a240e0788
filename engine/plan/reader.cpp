// SPDX-License-Identifier: Apache-2.0
#include "plan/reader.hpp"

#include "plan/json_io.hpp"
#include "plan/plan_error.hpp"
#include "plan/units.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace sonde::plan {
namespace {

const nlohmann::json& empty_object() {
    static const nlohmann::json empty = nlohmann::json::object();
    return empty;
}

/// Quoted text of a plan must not start a new line or control the terminal.
std::string one_line(std::string text) {
    std::replace_if(
        text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
    return text;
}

/// Levenshtein distance, for "did you mean".
std::size_t edit_distance(const std::string& a, const std::string& b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), 0U);
    for (std::size_t i = 0; i < a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i + 1;
        for (std::size_t j = 0; j < b.size(); ++j) {
            const std::size_t above = row[j + 1];
            row[j + 1] = std::min({above + 1, row[j] + 1, diagonal + (a[i] == b[j] ? 0U : 1U)});
            diagonal = above;
        }
    }
    return row[b.size()];
}

/// Whether a key needs no quotes.
bool needs_no_quotes(const std::string& key) {
    return !key.empty() && key.size() <= 40 && std::all_of(key.begin(), key.end(), [](unsigned char c) {
        return std::isalnum(c) != 0 || c == '_' || c == '-';
    });
}

}  // namespace

std::string Reader::quote(const nlohmann::json& value) {
    std::string text = serialize_json(value, JsonEncoding::ascii);
    return text.size() > 60 ? text.substr(0, 57) + "..." : text;
}

std::string Reader::member_path(const std::string& key) const {
    return path_.empty() ? key : key.empty() ? path_ : path_ + "." + key;
}

void Reader::fail(const std::string& key, const std::string& complaint) const {
    constexpr std::size_t longest = 600;  // quoted text may have any length
    const std::string sentence = "plan: " + member_path(key) + " " + complaint;
    throw PlanError(one_line(sentence.size() <= longest ? sentence : sentence.substr(0, longest) + "..."));
}

bool Reader::has(const std::string& key) const {
    known_members_.insert(key);
    if (!value_->is_object()) {
        fail("", "is " + quote(*value_) + ", but must be an object");
    }
    return value_->contains(key);
}

const nlohmann::json& Reader::value(const std::string& key, const std::string& expectation) const {
    if (!has(key)) {
        fail(key, "is missing" + (expectation.empty() ? expectation : ": it must be " + expectation));
    }
    return value_->at(key);
}

std::string Reader::text(const char* key) const {
    const nlohmann::json& member = value(key, "text");
    if (!member.is_string()) {
        fail(key, "is " + quote(member) + ", but must be text");
    }
    return member.get<std::string>();
}

std::string Reader::text(const char* key, const std::string& fallback) const {
    return has(key) ? text(key) : fallback;
}

std::string Reader::identifier(const char* key) const {
    value(key, "a name of letters, digits, '_', '.' or '-'");
    const std::string member = text(key);
    const bool good = std::all_of(member.begin(), member.end(), [](unsigned char c) {
        return std::isalnum(c) != 0 || c == '_' || c == '.' || c == '-';
    });
    if (member.empty() || member.size() > 100 || !good || member[0] == '.') {
        fail(key, "is " + quote(member) + ", but must be 1 to 100 letters, digits, '_', '.' or '-'");
    }
    return member;
}

std::string Reader::read_name(const char* key, std::span<const std::string_view> names) const {
    std::string allowed = "one of";
    for (const std::string_view name : names) {
        allowed += (allowed.back() == 'f' ? " " : ", ") + std::string(name);
    }
    const nlohmann::json& member = value(key, allowed);
    if (!member.is_string() ||
        std::find(names.begin(), names.end(), member.get_ref<const std::string&>()) == names.end()) {
        fail(key, "is " + quote(member) + ", but must be " + allowed);
    }
    return member.get<std::string>();
}

bool Reader::boolean(const char* key, bool fallback) const {
    if (!has(key)) {
        return fallback;
    }
    if (!value(key).is_boolean()) {
        fail(key, "is " + quote(value(key)) + ", but must be true or false");
    }
    return value(key).get<bool>();
}

std::optional<std::int64_t> Reader::integer(const char* key, std::int64_t low, std::int64_t high) const {
    return has(key) ? std::optional(Reader(value(key), member_path(key)).self_integer(low, high)) : std::nullopt;
}

std::int64_t Reader::integer(const char* key, std::int64_t fallback, std::int64_t low, std::int64_t high) const {
    return integer(key, low, high).value_or(fallback);
}

std::int64_t Reader::self_integer(std::int64_t low, std::int64_t high) const {
    const bool fits =
        value_->is_number_integer() &&
        !(value_->is_number_unsigned() && value_->get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX));
    if (!fits || value_->get<std::int64_t>() < low || value_->get<std::int64_t>() > high) {
        fail("", "is " + quote(*value_) + ", but must be a whole number from " + std::to_string(low) +
                     (high == INT64_MAX ? " up" : " to " + std::to_string(high)));
    }
    return value_->get<std::int64_t>();
}

std::optional<double> Reader::number(const char* key, double low, double high) const {
    if (!has(key)) {
        return std::nullopt;
    }
    const nlohmann::json& member = value(key);
    if (!member.is_number() || !(member.get<double>() >= low) || !(member.get<double>() <= high)) {
        fail(key, "is " + quote(member) + ", but must be a number from " + quote(low) + " to " + quote(high));
    }
    return member.get<double>();
}

double Reader::number(const char* key, double fallback, double low, double high) const {
    return number(key, low, high).value_or(fallback);
}

std::optional<std::uint64_t> Reader::bytes(const char* key) const {
    if (!has(key)) {
        return std::nullopt;
    }
    const nlohmann::json& member = value(key);
    if (member.is_number_integer()) {
        return integer(key, 0, INT64_MAX);
    }
    if (!member.is_string()) {
        fail(key, "is " + quote(member) + ", but must be bytes such as 4096 or \"4KiB\"");
    }
    try {
        return parse_bytes(member.get<std::string>());
    } catch (const std::invalid_argument& error) {
        fail(key, std::string("is wrong: ") + error.what());
    }
}

std::uint64_t Reader::bytes(const char* key, std::uint64_t fallback) const {
    return bytes(key).value_or(fallback);
}

std::optional<std::int64_t> Reader::duration(const char* key) const {
    if (!has(key)) {
        return std::nullopt;
    }
    const nlohmann::json& member = value(key);
    if (member.is_number()) {
        return std::llround(number(key, 0, 3.2e9).value_or(0) * 1e9);
    }
    if (!member.is_string()) {
        fail(key, "is " + quote(member) + ", but must be a duration such as \"10s\"");
    }
    try {
        return parse_duration(member.get<std::string>());
    } catch (const std::invalid_argument& error) {
        fail(key, std::string("is wrong: ") + error.what());
    }
}

std::int64_t Reader::duration(const char* key, std::int64_t fallback) const {
    return duration(key).value_or(fallback);
}

double Reader::rate(const char* key) const {
    const nlohmann::json& member = value(key, "a rate such as \"100MB/s\"");
    double rate = 0;
    try {
        rate = member.is_number() ? member.get<double>() : parse_rate(text(key));
    } catch (const std::invalid_argument& error) {
        fail(key, std::string("is wrong: ") + error.what());
    }
    if (!(rate >= 1) || !(rate <= 1e18)) {
        fail(key, "is " + quote(member) + ", but a rate must be from 1 B/s to 1e18 B/s");
    }
    return rate;
}

std::uint64_t Reader::count(const char* key, std::uint64_t fallback, std::int64_t low, std::int64_t high) const {
    return std::optional<std::uint64_t>(integer(key, low, high)).value_or(fallback);
}

std::uint64_t Reader::seed(std::uint64_t fallback) const {
    return count("seed", fallback, 0, INT64_MAX);
}

Reader Reader::object(const char* key) const {
    const nlohmann::json& member = value(key, "an object");
    if (!member.is_object()) {
        fail(key, "is " + quote(member) + ", but must be an object");
    }
    return Reader(member, member_path(key));
}

Reader Reader::object_or_empty(const char* key) const {
    return has(key) ? object(key) : Reader(empty_object(), member_path(key));
}

std::vector<Reader> Reader::list(const char* key) const {
    const bool none = !has(key) || (value(key).is_array() && value(key).empty());
    return none ? std::vector<Reader>{} : array(key);
}

std::vector<std::string> Reader::texts(const char* key) const {
    std::vector<std::string> values;
    for (const Reader& entry : list(key)) {
        if (!entry.value_->is_string()) {
            fail(key, "must be a list of texts");
        }
        values.push_back(entry.value_->get<std::string>());
    }
    return values;
}

std::vector<Reader> Reader::array(const char* key) const {
    const nlohmann::json& member = value(key, "a list with at least one entry");
    if (!member.is_array() || member.empty()) {
        fail(key, "is " + quote(member) + ", but must be a list with at least one entry");
    }
    std::vector<Reader> entries;
    for (std::size_t i = 0; i < member.size(); ++i) {
        entries.emplace_back(member[i], member_path(key) + "[" + std::to_string(i) + "]");
    }
    return entries;
}

std::vector<std::pair<std::string, nlohmann::json>> Reader::members() const {
    std::vector<std::pair<std::string, nlohmann::json>> values;
    for (const auto& [key, value] : value_->items()) {
        values.emplace_back(key, value);
    }
    return values;
}

void Reader::reject_unknown_members(std::initializer_list<const char*> also) const {
    if (!value_->is_object()) {
        fail("", "is " + quote(*value_) + ", but must be an object");
    }
    known_members_.insert(also.begin(), also.end());
    for (const auto& [key, value] : value_->items()) {
        if (known_members_.contains(key)) {
            continue;
        }
        const std::string name = needs_no_quotes(key) ? key : quote(key);
        const auto nearest = std::min_element(
            known_members_.begin(), known_members_.end(),
            [&k = key](const auto& a, const auto& b) { return edit_distance(k, a) < edit_distance(k, b); });
        if (needs_no_quotes(key) && nearest != known_members_.end() && edit_distance(key, *nearest) <= 3) {
            fail(name, "is not known; did you mean " + *nearest + "?");
        }
        std::string values;
        for (const std::string& member : known_members_) {
            values += (values.empty() ? "" : ", ") + member;
        }
        fail(name, "is not known; there are " + values);
    }
}

}  // namespace sonde::plan
