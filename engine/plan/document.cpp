// SPDX-License-Identifier: Apache-2.0
#include "plan/document.hpp"

#include "plan/json_io.hpp"
#include "plan/plan_error.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace sonde::plan {
namespace {

using nlohmann::json;

/// Rejects duplicate members, because JSON does not define which one counts.
class DuplicateGuard {
 public:
    bool operator()(int /*depth*/, json::parse_event_t event, json& parsed) {
        if (event == json::parse_event_t::object_start) {
            open_.emplace_back();
        } else if (event == json::parse_event_t::object_end) {
            open_.pop_back();
        } else if (event == json::parse_event_t::key && !open_.back().insert(parsed.get<std::string>()).second) {
            const std::string key = serialize_json(parsed, JsonEncoding::ascii);
            throw PlanError("plan: " + key.substr(0, 60) + " is there twice in one object: keep one");
        }
        return true;
    }

 private:
    std::vector<std::set<std::string>> open_;
};

std::string explain_parse_error(std::string_view text, std::size_t byte) {
    constexpr std::string_view blank = " \t\r\n";
    const std::size_t first = text.find_first_not_of(blank);
    if (first == std::string_view::npos) {
        return "the plan is empty: it must be a JSON object with the members schema, id, target and phases";
    }
    const std::string_view before = text.substr(0, std::min(byte > 0 ? byte - 1 : 0, text.size()));
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    const std::size_t begin = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
    const std::string position =
        "line " + std::to_string(line) + ", column " + std::to_string(before.size() - begin + 1);
    const bool toml =
        text[first] != '{' && text.substr(first, text.find('\n', first) - first).find('=') != std::string_view::npos;
    std::string problem = before.size() >= text.size() ? "the text ends too early" : "something else was expected";
    if (toml) {
        problem += "; it looks like TOML, which `sonde run` reads";
    }
    return "the plan is not JSON: " + position + ": " + problem;
}

}  // namespace

json parse_document(std::string_view text) {
    try {
        // Depth is limited before the recursive parser sees the text: a plan has seven levels.
        int depth = 0;
        bool quoted = false;
        for (std::size_t i = 0; i < text.size(); ++i) {
            if (quoted) {
                quoted = text[i] != '"';
                i += text[i] == '\\' ? 1 : 0;
                continue;
            }
            quoted = text[i] == '"';
            depth += (text[i] == '{' || text[i] == '[') ? 1 : (text[i] == '}' || text[i] == ']') ? -1 : 0;
            if (depth > 64) {
                throw PlanError("the plan is nested more than 64 levels deep: it is not a Sonde plan");
            }
        }
        return parse_json(text, DuplicateGuard());
    } catch (const json::parse_error& error) {
        throw PlanError(explain_parse_error(text, error.byte));
    } catch (const json::out_of_range&) {
        throw PlanError("the plan holds a number beyond what a computer can hold, such as 1e999");
    }
}

}  // namespace sonde::plan
