// SPDX-License-Identifier: Apache-2.0
// Defaults of omitted members, one by one, and the values of the names in a plan.
#include "plan/overlay.hpp"
#include "plan/parse.hpp"
#include "plan/resolved.hpp"
#include "runs/capabilities.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <nlohmann/json.hpp>
#include <string>

namespace {

using nlohmann::json;
namespace plan = sonde::plan;

plan::Plan parsed(const char* members) {
    return plan::parse_plan(
        std::string(R"({"schema": "sonde-plan/2", "id": "p", "target": {"path": "/tmp"}, )") + members + "}",
        sonde::runs::list_capabilities());
}

json resolve_plan_of(const char* members) {
    return json::parse(plan::resolve_plan(parsed(members)).dump());
}

const char* const default_access = R"({"transfer": 1048576, "block": 1048576, "segments": 1, "order": "sequential",
    "scope": "task", "stride": 0, "gap": 0, "offset": 0, "seed": 1})";
const char* const default_io = R"({"direct": false, "sync": "none", "fsync": "none", "preallocate": "none",
    "queue_depth": 1, "collective": false, "view": false, "registered": true, "sqpoll": false,
    "iopoll": false, "continue_short": true, "pause": "0ns",
    "chunk": 0, "alignment": 0, "collective_metadata": false})";
const char* const default_payload = R"({"kind": "stamped", "seed": 1, "compressible": 0.0, "duplicates": 0.0})";
const char* const default_paced = R"({"virtual_clock": true, "latency": "0ns", "ramp": false,
    "delays": {"create": "0ns", "transfer": "0ns", "close": "0ns", "sync": "0ns", "first_task_only": false},
    "fail_errno": 5})";

/// Checks the defaults that all phases share.
json make_default_phase(const char* id, const char* op, const char* open) {
    json phase = json::parse(R"({"process": "same", "measure": true, "barrier": "phase",
        "shift": {"by": "none", "n": 1, "seed": 1}, "stop": {"wearout": false, "first_done": false}, "valid": {},
        "before": [], "unless_mismatch": false})");
    phase["id"] = id;
    phase["op"] = op;
    phase["open"] = open;
    return phase;
}

json data_phase(const char* id, const char* op, const char* open) {
    json phase = make_default_phase(id, op, open);
    phase["backend"] = "posix";
    phase["access"] = json::parse(default_access);
    phase["io"] = json::parse(default_io);
    phase["verify"] = "none";
    phase["suffix"] = "";
    return phase;
}

}  // namespace

TEST_CASE("defaults_of_data_plan") {
    json expected = json::parse(R"({"schema": "sonde-plan/2", "id": "p",
        "target": {"path": "/tmp", "device": false, "keep": false, "use_existing": false, "keep_manifest": true, "min_free": 67108864},
        "tasks": {"processes": 1, "threads": 1, "pin": false},
        "data": {"backend": "posix",
                 "files": {"mapping": "per_task", "count": 1, "directories": "one", "name": "data", "suffix": ""},
                 "verify": "none"},
        "observe": {"slice": "1000000ns", "max_slices": 512, "progress": "250000000ns"}, "limits": {}})");
    expected["data"]["access"] = json::parse(default_access);
    expected["data"]["io"] = json::parse(default_io);
    expected["data"]["payload"] = json::parse(default_payload);
    expected["data"]["paced"] = json::parse(default_paced);
    expected["phases"] = {data_phase("w", "write", "truncate"), data_phase("r", "reread", "overwrite")};
    expected["phases"][1]["before"] =
        json::parse(R"([{"kind": "sync", "need": "best_effort", "max_residency": 0.01}])");
    CHECK(resolve_plan_of(R"("phases": [{"id": "w", "op": "write"},
                                    {"id": "r", "op": "reread", "before": [{"kind": "sync"}]}])") == expected);
}

TEST_CASE("defaults_of_tree_plan") {
    json meta = json::parse(R"({"backend": "posix",
        "tree": {"top": "items", "copies": 1, "depth": 0, "branching": 1, "leaf_only": false, "items_per_dir": 0,
                 "scope": "shared", "home_shift": 0},
        "names": {"branch": "branch", "file": "file", "directory": "dir"}, "objects": "files",
        "file": {"write": 0, "read": 0, "fsync": false, "create": "open", "direct": false, "shared_single": false,
                 "exclusive": true},
        "select": {"order": "creation", "exponent": 1.0, "seed": 1},
        "lookup": {"stat": "stat", "fields": ["type", "mode", "nlink", "uid", "gid", "atime", "mtime", "ctime", "ino",
                                              "size", "blocks"],
                   "freshness": "as_stat", "paths": "relative", "walk_from": "tree", "examine_all": true},
        "sync": false, "single_task": false, "missing": "stop",
        "cycle": {"working": 1, "spread": 1, "keep": false, "wait": 0.0}, "verify": "none"})");
    meta["payload"] = json::parse(default_payload);
    meta["paced"] = json::parse(default_paced);
    json expected = make_default_phase("m", "mktree", "overwrite");
    expected["meta"] = meta;
    const char* const plan = R"("meta": {}, "phases": [{"id": "m", "op": "mktree"}])";
    const json resolved = resolve_plan_of(plan);
    CHECK(resolved["phases"] == json::array({expected}));
    CHECK(resolved["meta"] == json::object());
    CHECK_FALSE(resolved.contains("data"));
    const plan::Phase phase = parsed(plan).phases.at(0);
    CHECK(phase.data_at == "data");
    CHECK(phase.data.access.transfer == 1);  // of what is written and read
    CHECK_FALSE(phase.data.io.direct);
}

TEST_CASE("minimal_streams_windows_filters_and_amounts") {
    const json duplex = resolve_plan_of(R"("data": {"files": {"mapping": "many", "count": 2}},
        "phases": [{"id": "w", "op": "write"},
                   {"id": "d", "op": "duplex", "streams": [{"id": "i", "op": "read"},
                                                         {"id": "o", "op": "write", "file": 1}]}])");
    CHECK(duplex["phases"][1]["streams"] == json::parse(R"([{"id": "i", "op": "read", "tasks": "same", "file": 0},
                                                          {"id": "o", "op": "write", "tasks": "same", "file": 1}])"));
    const json tree = resolve_plan_of(R"("meta": {"lookup": {"paths": "full"}},
        "phases": [{"id": "m", "op": "mktree", "meta": {"window": {}}},
                   {"id": "f", "op": "walk", "meta": {"find": {"name": "x"}}},
                   {"id": "g", "op": "walk", "meta": {"find": {"size_min": 0}}}])");
    CHECK(tree["phases"][0]["meta"]["window"] == json::parse(R"({"first": 0, "count": 0, "across": false})"));
    CHECK(tree["phases"][1]["meta"]["find"] == json::parse(R"({"type": "any", "name": "x"})"));
    CHECK(tree["phases"][2]["meta"]["find"] == json::parse(R"({"type": "any", "size_min": 0})"));
    const auto volume = [](const char* amount) {
        return resolve_plan_of((std::string(R"("data": {"access": {"volume": )") + amount +
                                R"(}}, "phases": [{"id": "w", "op": "write"}])")
                                   .c_str())["data"]["access"]["volume"];
    };
    CHECK(volume(R"({"bytes": 5})") == 5);
    CHECK(volume(R"({"of": "node_memory"})") == json::parse(R"({"of": "node_memory", "x": 1.0, "per": "task"})"));
    CHECK(volume(R"({"bytes": 5, "per": "node"})") == json::parse(R"({"of": "bytes", "bytes": 5, "per": "node"})"));
}

TEST_CASE("choice_names_have_their_values") {
    const auto meta = [](const char* lookup) {
        return *parsed(
                    (std::string(R"("meta": {"lookup": )") + lookup + R"(}, "phases": [{"id": "m", "op": "mktree"}])")
                        .c_str())
                    .phases.at(0)
                    .meta;
    };
    CHECK(meta(R"({"freshness": "as_stat"})").statx_sync_flag == 0);
    CHECK(meta(R"({"freshness": "force"})").statx_sync_flag == 0x2000);  // AT_STATX_FORCE_SYNC
    CHECK(meta(R"({"freshness": "dont"})").statx_sync_flag == 0x4000);   // AT_STATX_DONT_SYNC
    CHECK(meta("{}").statx_fields == 0x7ff);
    CHECK(meta(R"({"fields": ["basic"]})").statx_fields == 0x7ff);
    CHECK(meta(R"({"fields": ["all"]})").statx_fields == 0xfff);
    CHECK(meta(R"({"fields": ["btime", "size"]})").statx_fields == (STATX_BTIME | STATX_SIZE));
    CHECK(meta(R"({"fields": []})").statx_fields == 0);
    CHECK(meta(R"({"walk_from": "directory"})").walks_run_directory);
    CHECK_FALSE(meta(R"({"walk_from": "tree"})").walks_run_directory);
    const plan::Plan both = parsed(R"("meta": {"missing": "count"}, "data": {"files": {"mapping": "many", "count": 2}},
        "phases": [{"id": "w", "op": "write", "process": "same",
                    "before": [{"kind": "sync", "need": "required"}, {"kind": "sync", "need": "best_effort"}]},
                   {"id": "d", "op": "duplex", "process": "separate",
                    "streams": [{"id": "i", "op": "read"}, {"id": "o", "op": "write", "file": 1}]},
                   {"id": "s", "op": "stat"}, {"id": "t", "op": "stat", "on": "data"}, {"id": "u", "op": "walk"},
                   {"id": "v", "op": "readdir", "on": "meta", "meta": {"missing": "stop"}}])");
    CHECK_FALSE(both.phases[0].separate_process);
    CHECK(both.phases[1].separate_process);
    CHECK(both.phases[0].before[0].required);
    CHECK_FALSE(both.phases[0].before[1].required);
    CHECK_FALSE(both.phases[1].streams[0].write);
    CHECK(both.phases[1].streams[1].write);
    CHECK(both.phases[2].op == plan::Op::stat);  // where a plan has both, the files of data are meant
    CHECK(both.phases[3].op == plan::Op::stat);
    CHECK_FALSE(both.phases[2].meta);
    CHECK(both.phases[4].meta->continues_on_missing);
    CHECK_FALSE(both.phases[5].meta->continues_on_missing);
}

TEST_CASE("shared_operation_name_means_tree_without_data") {
    CHECK(parsed(R"("meta": {"tree": {"items_per_dir": 1}}, "phases": [{"id": "s", "op": "stat"}])").phases[0].op ==
          plan::Op::stat_items);
    CHECK(parsed(R"("meta": {"tree": {"items_per_dir": 1}}, "data": {},
                    "phases": [{"id": "s", "op": "stat", "on": "meta"}])")
              .phases[0]
              .op == plan::Op::stat_items);
    CHECK(parsed(R"("meta": {}, "phases": [{"id": "w", "op": "write"}])").has_data == false);
    CHECK(parsed(R"("phases": [{"id": "w", "op": "write"}])").has_data);
    CHECK(parsed(R"("meta": {}, "data": {}, "phases": [{"id": "w", "op": "write"}])").has_data);
}

TEST_CASE("phase_meta_is_merged_by_table_and_replaces_schedule") {
    const plan::Plan resolved = parsed(R"("meta": {"backend": "paced", "paced": {"latency": "1us"},
            "file": {"write": 10, "read": 20, "direct": true}, "tree": {"items_per_dir": 3}, "verify": "none"},
        "phases": [{"id": "c", "op": "create", "backend": "posix", "verify": "on_read", "meta": {"file": {"write": 30}}},
                   {"id": "s", "op": "stat", "meta": {"paced": {"ramp": true}}}])");
    const plan::Phase& first = resolved.phases[0];
    CHECK(first.meta->write_bytes == 30);
    CHECK(first.meta->read_bytes == 20);
    CHECK(first.data.backend == "posix");
    CHECK(first.data.paced.latency == 1000);
    CHECK(first.data.access.transfer == 30);
    CHECK(first.data.io.direct);
    CHECK(first.data.verify == plan::Verify::on_read);
    const plan::Phase& second = resolved.phases[1];
    CHECK(second.data.backend == "paced");
    CHECK(second.data.verify == plan::Verify::none);
    CHECK(second.data.paced.latency == 0);
    CHECK(second.data.paced.ramp);
    CHECK(second.data.access.transfer == 20);
}

TEST_CASE("merged_member_removes_only_excluded_members") {
    const json base = {{"segments", 1}, {"volume", 2},   {"items_per_dir", 3}, {"items_per_task", 4},  {"size", 5},
                       {"size_min", 6}, {"size_max", 7}, {"newer_than", 8},    {"newer_than_file", 9}, {"other", 10}};
    const auto replaced_by = [&](const char* member) {
        const json merged = plan::overlay_members(base, {{member, 0}});
        CHECK(merged.at(member) == 0);
        std::string names;
        for (const auto& [name, value] : base.items()) {
            names += merged.contains(name) ? "" : (names.empty() ? "" : " ") + name;
        }
        return names;
    };
    CHECK(replaced_by("segments") == "volume");
    CHECK(replaced_by("volume") == "segments");
    CHECK(replaced_by("items_per_dir") == "items_per_task");
    CHECK(replaced_by("items_per_task") == "items_per_dir");
    CHECK(replaced_by("size") == "size_max size_min");
    CHECK(replaced_by("size_min") == "size");
    CHECK(replaced_by("size_max") == "size");
    CHECK(replaced_by("newer_than") == "newer_than_file");
    CHECK(replaced_by("newer_than_file") == "newer_than");
    CHECK(replaced_by("other") == "");
    CHECK(plan::overlay_members(nullptr, {{"a", 1}}) == json({{"a", 1}}));
}
