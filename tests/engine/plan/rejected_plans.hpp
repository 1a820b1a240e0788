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
inline std::string error_of(json plan, const Changes& changes) {
    for (const auto& [pointer, value] : changes) {
        plan[json::json_pointer(pointer)] = value;
    }
    try {
        sonde::plan::parse_plan(plan.dump(), sonde::runs::list_capabilities());
    } catch (const sonde::plan::PlanError& error) {
        return error.what();
    }
    return "";
}

struct RejectionCase {
    json plan;
    Changes rejected_changes;
    const char* expected_text;
    Changes accepted_changes;  ///< as near to the border as can be
};

inline void check_rejections(const std::vector<RejectionCase>& rules) {
    for (const RejectionCase& rule : rules) {
        CAPTURE(rule.expected_text);
        const std::string sentence = error_of(rule.plan, rule.rejected_changes);
        CAPTURE(sentence);
        CHECK(sentence.find(rule.expected_text) != std::string::npos);
        CHECK(error_of(rule.plan, rule.accepted_changes) == "");
    }
}

}  // namespace sonde::tests
