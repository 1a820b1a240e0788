// SPDX-License-Identifier: Apache-2.0
// Valid plans, and for each rule two sets of changes to a valid plan: one violates only this rule, the other one nearly
// does and is valid.
#pragma once

#include "plan/parse.hpp"
#include "runs/capabilities.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace sonde::tests {

using nlohmann::json;
using Changes = std::vector<std::pair<const char*, json>>;

inline json data_plan() {
    return json::parse(R"({
        "schema": "sonde-plan/2", "id": "p", "target": {"path": "/tmp"},
        "data": {"access": {"transfer": "4KiB", "block": "1MiB"}},
        "phases": [{"id": "w", "op": "write"}, {"id": "r", "op": "read"}]})");
}

inline json many_plan() {
    json plan = data_plan();
    plan["data"]["files"] = {{"mapping", "many"}, {"count", 4}};
    return plan;
}

inline json duplex_plan() {
    json plan = many_plan();
    plan["phases"][1] = json::parse(R"({"id": "d", "op": "duplex", "streams": [
        {"id": "in", "op": "read", "file": 0}, {"id": "out", "op": "write", "file": 1}]})");
    return plan;
}

inline json tree_plan() {
    return json::parse(R"({
        "schema": "sonde-plan/2", "id": "p", "target": {"path": "/tmp"},
        "meta": {"tree": {"items_per_dir": 10}},
        "phases": [{"id": "m", "op": "mktree"}, {"id": "c", "op": "create"}, {"id": "s", "op": "stat"}]})");
}

inline json cycle_plan() {
    return json::parse(R"({
        "schema": "sonde-plan/2", "id": "p", "target": {"path": "/tmp"},
        "meta": {"tree": {"items_per_dir": 10, "scope": "per_task"}, "file": {"write": 9, "read": 9},
                 "lookup": {"paths": "full"}, "payload": {"kind": "ior_timestamp"},
                 "window": {"first": 1, "count": 4}, "cycle": {"working": 5}},
        "phases": [{"id": "m", "op": "mktree"}, {"id": "c", "op": "cycle"}]})");
}

/// The error text of a plan with these members; empty when it is accepted.
inline std::string said_of(json plan, const Changes& changes) {
    for (const auto& [pointer, value] : changes) {
        plan[json::json_pointer(pointer)] = value;
    }
    try {
        sonde::plan::parse_plan(plan.dump(), sonde::runs::capabilities());
    } catch (const sonde::plan::PlanError& error) {
        return error.what();
    }
    return "";
}

struct Rule {
    json plan;
    Changes wrong;
    const char* says;
    Changes right;  ///< as near to the border as can be
};

inline void hold(const std::vector<Rule>& rules) {
    for (const Rule& rule : rules) {
        CAPTURE(rule.says);
        const std::string sentence = said_of(rule.plan, rule.wrong);
        CAPTURE(sentence);
        CHECK(sentence.find(rule.says) != std::string::npos);
        CHECK(said_of(rule.plan, rule.right) == "");
    }
}

}  // namespace sonde::tests
