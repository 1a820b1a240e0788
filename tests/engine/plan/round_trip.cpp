// SPDX-License-Identifier: Apache-2.0
// What a plan says is what is understood: every member of a plan that leaves none to a default comes back as it was
// given, and of a plan that says nothing come the defaults of the schema.
#include "plan/parse.hpp"
#include "plan/resolved.hpp"
#include "runs/capabilities.hpp"

#include <doctest/doctest.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace {

using nlohmann::json;

json understood(const json& plan) {
    return json::parse(
        sonde::plan::resolve_plan(sonde::plan::parse_plan(plan.dump(), sonde::runs::list_capabilities())).dump());
}

/// Every leaf of `expected` stands in `resolved`, at the same place with the same value.
void holds(const json& expected, const json& resolved, const std::string& path) {
    CAPTURE(path);
    CAPTURE(resolved.dump());
    if (expected.is_object()) {
        for (const auto& [name, value] : expected.items()) {
            REQUIRE(resolved.contains(name));
            holds(value, resolved.at(name), path + "/" + name);
        }
    } else if (expected.is_array() && !expected.empty() && expected[0].is_object()) {
        REQUIRE(resolved.size() == expected.size());
        for (std::size_t i = 0; i < expected.size(); ++i) {
            holds(expected[i], resolved[i], path + "/" + std::to_string(i));
        }
    } else {
        CHECK(expected == resolved);
    }
}

json schema() {
    return json::parse(std::ifstream(std::string(SONDE_SCHEMA) + "/plan/plan.schema.json"));
}

/// The defaults that the schema says for a table, in base units where they are sizes or times.
void defaults_hold(const json& table, const json& resolved, const std::string& path) {
    for (const auto& [name, member] : table.at("properties").items()) {
        CAPTURE(path + "/" + name);
        if (member.contains("default") && resolved.contains(name)) {
            const json& right = member.at("default");
            const json& ours = resolved.at(name);
            if (ours.is_string() && ours.get<std::string>().ends_with("ns")) {
                continue;  // times are held by tests of the whole chain
            }
            if (right.is_string() && ours.is_number()) {
                continue;  // so are sizes
            }
            CHECK(ours == right);
        } else if (member.contains("properties") && resolved.contains(name) && resolved.at(name).is_object()) {
            defaults_hold(member, resolved.at(name), path + "/" + name);
        }
    }
}

json whole_data_plan() {
    return json::parse(R"({
        "schema": "sonde-plan/2", "id": "all", "title": "All of it",
        "target": {"path": "/tmp", "directory": "d", "keep": true, "use_existing": true, "keep_manifest": false,
                   "min_free": 12345, "full_stripe": 65536,
                   "striping": {"count": 4, "size": 1048576, "pool": "flash", "start": 2}},
        "tasks": {"processes": 3, "threads": 5, "pin": true, "active": 7},
        "data": {
            "backend": "paced",
            "files": {"mapping": "many", "count": 3, "directories": "per_node", "name": "f"},
            "access": {"transfer": 512, "block": 2048, "segments": 7, "order": "random_replace", "scope": "file",
                       "stride": 0, "gap": 512, "offset": 1024, "seed": 9, "within": 1024},
            "io": {"fsync": "per_op", "preallocate": "fallocate", "pause": "3000000ns", "continue_short": false},
            "payload": {"kind": "random", "seed": 4, "compressible": 0.25, "duplicates": 0.5, "period": 8192},
            "verify": "none",
            "paced": {"virtual_clock": false, "latency": "5000ns", "ramp": true, "fail_after": 17, "fail_errno": 28,
                      "schedule": [{"at": "0ns", "rate": 1000.0}, {"at": "2000000000ns", "rate": 3000.0}],
                      "delays": {"create": "1ns", "transfer": "2ns", "close": "3ns", "sync": "4ns",
                                 "first_task_only": true},
                      "slow_tasks": {"2": 3.5}}
        },
        "phases": [
            {"id": "w", "op": "write", "open": "exclusive", "files": [0, 2], "measure": false,
             "stop": {"stonewall": "9000000000ns", "min_time": "1000000000ns", "wearout": true, "operations": 11},
             "valid": {"min_time": "7000000000ns", "max_residency": 0.125},
             "before": [{"kind": "sleep", "need": "required", "time": "1000000000ns", "max_residency": 0.5},
                        {"kind": "memory_hog", "need": "best_effort", "fraction": 0.75},
                        {"kind": "command", "command": "true"}],
             "operations_file": "ops.csv"},
            {"id": "r", "op": "read", "data_of": "w", "files": [2], "process": "separate", "unless_mismatch": true,
             "shift": {"by": "list", "n": -2, "seed": 5, "owners": [6, 5, 4, 3, 2, 1, 0]},
             "access": {"transfer": 1024, "order": "sequential", "within": 1024}},
            {"id": "m", "op": "mixed", "access": {"read_ratio": 0.75}, "stop": {"time": "5000000000ns"}},
            {"id": "d", "op": "duplex", "streams": [{"id": "in", "op": "read", "tasks": "second_half", "file": 2},
                                                  {"id": "out", "op": "write", "tasks": "first_half", "file": 1}]},
            {"id": "s", "op": "stat", "on": "data"}
        ],
        "observe": {"slice": "5000000ns", "max_slices": 99, "progress": "250000000ns"},
        "limits": {"time": "60000000000ns", "begin": "30000000000ns"}})");
}

json whole_tree_plan() {
    return json::parse(R"({
        "schema": "sonde-plan/2", "id": "tree", "target": {"path": "/tmp"},
        "meta": {
            "paced": {"latency": "7ns"},
            "tree": {"top": "t", "copies": 2, "depth": 2, "branching": 3, "leaf_only": true, "items_per_dir": 5,
                     "scope": "per_task", "home_shift": -3},
            "names": {"branch": "b", "file": "f", "directory": "d"}, "objects": "files",
            "file": {"write": 100, "read": 50, "fsync": true, "create": "open", "direct": true, "shared_single": false,
                     "exclusive": false},
            "select": {"order": "permute", "exponent": 1.5, "seed": 8},
            "lookup": {"stat": "statx", "fields": ["mode", "size"], "freshness": "force", "paths": "full",
                       "walk_from": "directory", "examine_all": true},
            "sync": true, "single_task": false, "missing": "count", "payload": {"kind": "stamped", "seed": 6},
            "cycle": {"working": 3, "spread": -2, "keep": true, "wait": 2.5}
        },
        "phases": [
            {"id": "m", "op": "mktree"}, {"id": "c", "op": "create", "stop": {"items": 4}},
            {"id": "s", "op": "stat", "on": "meta", "meta": {"select": {"order": "zipf"}, "single_task": true}},
            {"id": "f", "op": "walk", "meta": {"find": {"name": "*1", "type": "file", "size_min": 3, "size_max": 9,
                                                        "newer_than": 1.5}}},
            {"id": "g", "op": "walk", "meta": {"find": {"newer_than_file": "x"}}}
        ]})");
}

/// Each table of a plan with a member that nobody knows: what is said of it must name that member where it stands.
void refuse_strangers(json& plan, json& here, const std::string& path) {
    if (here.is_object() && !path.ends_with("/hints") && !path.ends_with("/slow_tasks")) {
        here["sing"] = 1;
        CAPTURE(path);
        std::string sentence;
        try {
            understood(plan);
        } catch (const sonde::plan::PlanError& error) {
            sentence = error.what();
        }
        CHECK(sentence.find("sing is not known") != std::string::npos);
        here.erase("sing");
    }
    if (here.is_structured()) {
        for (auto& [name, value] : here.items()) {
            refuse_strangers(plan, value, path + "/" + name);
        }
    }
}

}  // namespace

TEST_CASE("complete_data_plan_is_parsed_member_by_member") {
    const json plan = whole_data_plan();
    json expected = plan;
    expected["phases"][1].erase("access");  // what it lays over the plan's is below
    json request = plan;
    request["phases"][1]["access"]["order"] = "random_replace";
    const json resolved = understood(request);
    holds(expected, resolved, "");
    CHECK(resolved["phases"][1]["access"]["transfer"] == 1024);
    CHECK(resolved["phases"][1]["access"]["block"] == 2048);
    CHECK(resolved["phases"][1]["access"]["gap"] == 512);
    CHECK_FALSE(resolved["phases"][0]["access"].contains("read_ratio"));
    CHECK_FALSE(resolved["phases"][0].contains("on"));
    CHECK(resolved["phases"][1]["on"] == "data");
    CHECK_FALSE(resolved["phases"][2].contains("streams"));
}

TEST_CASE("volume_groups_direct_io_and_hints_survive_resolve") {
    const json plan = json::parse(R"({
        "schema": "sonde-plan/2", "id": "more", "target": {"path": "/tmp"}, "tasks": {"threads": 4},
        "data": {"files": {"mapping": "per_group", "group_size": 2, "directories": "per_task"},
                 "access": {"transfer": 512, "block": 512, "order": "stride", "stride": 1024,
                            "volume": {"of": "node_memory", "x": 1.5, "per": "node"}},
                 "io": {"direct": true, "sync": "dsync", "queue_depth": 1}, "verify": "both"},
        "phases": [{"id": "w", "op": "write", "barrier": "intra", "access": {"volume": {"of": "bytes", "bytes": 4096,
                                                                               "per": "total"}}},
                   {"id": "v", "op": "rewrite", "verify": "readback", "access": {"volume": 2048}}]})");
    const json resolved = understood(plan);
    json expected = plan;
    expected["phases"][1]["access"]["volume"] = 2048;
    holds(expected, resolved, "");
    CHECK_FALSE(resolved["data"]["access"].contains("segments"));
    const json collective = json::parse(R"({
        "schema": "sonde-plan/2", "id": "mpi", "target": {"path": "/tmp"},
        "data": {"backend": "mpiio", "files": {"mapping": "shared"},
                 "io": {"collective": true, "view": true, "hints": {"cb_nodes": "4"}}},
        "phases": [{"id": "w", "op": "write"}]})");
    holds(collective, understood(collective), "");
}

TEST_CASE("complete_tree_plan_is_parsed_member_by_member") {
    const json plan = whole_tree_plan();
    const json resolved = understood(plan);
    for (const json& phase : resolved["phases"]) {
        json expected = plan["meta"];
        if (phase["id"] == "s") {
            expected["select"]["order"] = "zipf";
            expected["single_task"] = true;
        }
        holds(expected, phase["meta"], phase["id"]);
    }
    holds(plan["phases"], resolved["phases"], "/phases");
    CHECK_FALSE(resolved["phases"][0]["meta"].contains("find"));
    CHECK_FALSE(resolved["phases"][0]["meta"].contains("window"));
    CHECK(resolved["phases"][1]["meta"]["verify"] == "none");
    const json sizes = understood(json::parse(R"({"schema": "sonde-plan/2", "id": "t", "target": {"path": "/tmp"},
        "meta": {"tree": {"items_per_task": 24, "depth": 1, "branching": 3, "copies": 2}},
        "phases": [{"id": "c", "op": "create"}, {"id": "w", "op": "walk", "meta": {"find": {"size": 7}}}]})"));
    CHECK(sizes["phases"][0]["meta"]["tree"]["items_per_dir"] == 3);  // 24 items in 2 copies of 4 directories
    CHECK(sizes["phases"][1]["meta"]["find"]["size_min"] == 7);
    CHECK(sizes["phases"][1]["meta"]["find"]["size_max"] == 7);
    CHECK(sizes["phases"][1]["meta"]["lookup"]["examine_all"] == false);
    CHECK(sizes["phases"][0]["meta"]["lookup"]["examine_all"] == true);
    const auto parsed = sonde::plan::parse_plan(plan.dump(), sonde::runs::list_capabilities());
    CHECK(parsed.phases[1].data.io.direct);
    CHECK(parsed.phases[1].data.access.transfer == 100);
}

TEST_CASE("window_is_parsed_unchanged") {
    const json plan = json::parse(R"({"schema": "sonde-plan/2", "id": "t", "target": {"path": "/tmp"},
        "meta": {"tree": {"items_per_dir": 10}, "lookup": {"paths": "full"},
                 "window": {"first": 2, "count": 3, "across": true}},
        "phases": [{"id": "s", "op": "stat"}]})");
    holds(plan["meta"], understood(plan)["phases"][0]["meta"], "");
}

TEST_CASE("minimal_plan_has_schema_defaults") {
    const json members = schema().at("properties");
    const json data = understood(json::parse(R"({"schema": "sonde-plan/2", "id": "p", "target": {"path": "/tmp"},
        "data": {}, "phases": [{"id": "w", "op": "write", "before": [{"kind": "sync"}]}]})"));
    for (const char* part : {"target", "tasks", "data", "observe"}) {
        defaults_hold(members.at(part), data.at(part), part);
    }
    defaults_hold(members.at("phases").at("items"), data.at("phases")[0], "phases");
    CHECK(data["phases"][0]["before"][0]["max_residency"] == 0.01);
    CHECK(data["observe"]["slice"] == "1000000ns");
    CHECK(data["observe"]["progress"] == "250000000ns");
    CHECK(data["data"]["io"]["pause"] == "0ns");
    CHECK(data["data"]["paced"]["delays"]["sync"] == "0ns");
    const json tree = understood(json::parse(R"({"schema": "sonde-plan/2", "id": "p", "target": {"path": "/tmp"},
        "meta": {"tree": {"items_per_dir": 1}}, "phases": [{"id": "c", "op": "create"}]})"));
    defaults_hold(members.at("meta"), tree["phases"][0]["meta"], "meta");
    CHECK_FALSE(tree.contains("data"));
}

TEST_CASE("suggestion_is_name_with_smallest_edit_distance") {
    const auto sentence = [](const char* name) {
        json plan = json::parse(R"({"schema": "sonde-plan/2", "id": "p", "target": {"path": "/tmp"},
                                    "phases": [{"id": "w", "op": "write"}]})");
        plan["target"][name] = true;
        try {
            understood(plan);
        } catch (const sonde::plan::PlanError& error) {
            return std::string(error.what());
        }
        return std::string();
    };
    CHECK(sentence("keeep").ends_with("did you mean keep?"));
    CHECK(sentence("kep").ends_with("did you mean keep?"));
    CHECK(sentence("eep").ends_with("did you mean keep?"));
    CHECK(sentence("keep_manifes").ends_with("did you mean keep_manifest?"));
    CHECK(sentence("kemp").ends_with("did you mean keep?"));
    CHECK(sentence("use_existin").ends_with("did you mean use_existing?"));
    CHECK(sentence("ful_strip").ends_with("did you mean full_stripe?"));
    CHECK(sentence("something").find("is not known; there are device, directory, full_stripe, keep") !=
          std::string::npos);
}

TEST_CASE("unknown_member_is_rejected_in_every_table") {
    json data = whole_data_plan();
    data["phases"][1].erase("access");
    refuse_strangers(data, data, "");
    json tree = whole_tree_plan();
    refuse_strangers(tree, tree, "");
}

TEST_CASE("non_object_is_rejected_and_largest_number_accepted") {
    json plan = whole_data_plan();
    plan["phases"].push_back(3);
    std::string sentence;
    try {
        understood(plan);
    } catch (const sonde::plan::PlanError& error) {
        sentence = error.what();
    }
    CHECK(sentence == "plan: phases[5] is 3, but must be an object");
    json largest = json::parse(R"({"schema": "sonde-plan/2", "id": "p", "target": {"path": "/tmp"},
                                   "phases": [{"id": "w", "op": "write", "shift": {"seed": 9223372036854775807}}]})");
    CHECK(understood(largest)["phases"][0]["shift"]["seed"] == INT64_MAX);
    largest["phases"][0]["shift"]["seed"] = 9223372036854775808ULL;
    CHECK_THROWS_AS(understood(largest), sonde::plan::PlanError);
}
