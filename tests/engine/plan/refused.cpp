// SPDX-License-Identifier: Apache-2.0
// Every rule of a plan has a plan that breaks only it, and one beside it that does not.
#include "plan/parse.hpp"
#include "runs/offer.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace {

using nlohmann::json;
using Changes = std::vector<std::pair<const char*, json>>;

json data_plan() {
    return json::parse(R"({
        "schema": "sonde-plan/1", "id": "p", "target": {"path": "/tmp"},
        "data": {"access": {"transfer": "4KiB", "block": "1MiB"}},
        "phases": [{"id": "w", "op": "write"}, {"id": "r", "op": "read"}]})");
}

json many_plan() {
    json plan = data_plan();
    plan["data"]["files"] = {{"mapping", "many"}, {"count", 4}};
    return plan;
}

json duplex_plan() {
    json plan = many_plan();
    plan["phases"][1] = json::parse(R"({"id": "d", "op": "duplex", "lanes": [
        {"id": "in", "op": "read", "file": 0}, {"id": "out", "op": "write", "file": 1}]})");
    return plan;
}

json tree_plan() {
    return json::parse(R"({
        "schema": "sonde-plan/1", "id": "p", "target": {"path": "/tmp"},
        "meta": {"tree": {"items_per_dir": 10}},
        "phases": [{"id": "m", "op": "mktree"}, {"id": "c", "op": "create"}, {"id": "s", "op": "stat"}]})");
}

json cycle_plan() {
    return json::parse(R"({
        "schema": "sonde-plan/1", "id": "p", "target": {"path": "/tmp"},
        "meta": {"tree": {"items_per_dir": 10, "scope": "per_task"}, "file": {"write": 9, "read": 9},
                 "lookup": {"paths": "full"}, "payload": {"kind": "ior_timestamp"},
                 "window": {"first": 1, "count": 4}, "cycle": {"working": 5}},
        "phases": [{"id": "m", "op": "mktree"}, {"id": "c", "op": "cycle"}]})");
}

/// What is said of a plan with these members set; empty when it is taken.
std::string said_of(json plan, const Changes& changes) {
    for (const auto& [pointer, value] : changes) {
        plan[json::json_pointer(pointer)] = value;
    }
    try {
        sonde::plan::parse_plan(plan.dump(), sonde::runs::offer());
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

void hold(const std::vector<Rule>& rules) {
    for (const Rule& rule : rules) {
        CAPTURE(rule.says);
        const std::string said = said_of(rule.plan, rule.wrong);
        CAPTURE(said);
        CHECK(said.find(rule.says) != std::string::npos);
        CHECK(said_of(rule.plan, rule.right) == "");
    }
}

const json stride = {{"transfer", 512}, {"block", 1024}, {"order", "stride"}, {"stride", 512}};

json with(json table, const char* name, const json& value) {
    table[name] = value;
    return table;
}

json lanes(const char* first, const char* second) {
    return json::parse(std::string(R"([{"id": "i", "op": "read", "file": 0, "tasks": ")") + first +
                       R"("}, {"id": "o", "op": "write", "file": 1, "tasks": ")" + second + R"("}])");
}

}  // namespace

TEST_CASE("the plans of this file are good as they are") {
    for (const json& plan : {data_plan(), many_plan(), duplex_plan(), tree_plan(), cycle_plan()}) {
        CHECK(said_of(plan, {}) == "");
    }
}

TEST_CASE("rules about where accesses go") {
    hold({
        {data_plan(), {{"/data/access/transfer", 0}}, "must be from 1 B to 1 GiB", {{"/data/access/transfer", 1}}},
        {data_plan(),
         {{"/data/access", {{"transfer", (1 << 30) + 1}}}},
         "must be from 1 B to 1 GiB",
         {{"/data/access", {{"transfer", 1 << 30}}}}},
        {data_plan(), {{"/data/access/within", 4096}}, "within is only used with order", {}},
        {data_plan(),
         {{"/data/access/order", "random_replace"}, {"/data/access/within", 4095}},
         "within is 4095 B, but must be a multiple of transfer (4096 B)",
         {{"/data/access/order", "random_replace"}, {"/data/access/within", 4096}}},
        {data_plan(),
         {{"/data/access/order", "random_replace"}, {"/data/access/within", 6144}},
         "within is 6144 B",
         {{"/data/access/order", "random_replace"}, {"/data/access/within", 8192}}},
        {data_plan(), {{"/data/access", with(stride, "stride", 511)}}, "would overlap", {{"/data/access", stride}}},
        {data_plan(), {{"/data/access", with(stride, "gap", 1)}}, "the stride already says it", {}},
        {data_plan(),
         {{"/data/access/volume", 0}},
         "access.volume must be more than zero",
         {{"/data/access/volume", 1}}},
        {data_plan(),
         {{"/data/access/volume", {{"of", "node_memory"}, {"x", 0.0}}}},
         "access.volume.x",
         {{"/data/access/volume", {{"of", "node_memory"}, {"x", 0.01}}}}},
        {data_plan(),
         {{"/data/access/offset", "4096PiB"}},
         "reaches beyond the largest file",
         {{"/data/access/offset", "4095PiB"}}},
        {data_plan(),
         {{"/phases/1/access", {{"volume", (1 << 20) - 1}}}},
         "blocks are moved whole",
         {{"/phases/1/access", {{"volume", 1 << 20}}}}},
    });
}

TEST_CASE("how many blocks fit into the largest file, for each way to share it") {
    const auto at_most = [](const json& files, const json& tasks, std::uint64_t segments) {
        json plan = data_plan();
        plan["data"] = {{"files", files},
                        {"access", {{"transfer", 1}, {"block", 1ULL << 40U}, {"segments", segments}}}};
        plan["tasks"] = tasks;
        return said_of(plan, {}).empty();
    };
    // 4 EiB hold 4 Mi blocks of 1 TiB, less what the sharers take.
    constexpr std::uint64_t most = 1ULL << 22U;
    const json four = {{"threads", 2}, {"processes", 2}};
    for (const auto& [files, share] : std::vector<std::pair<json, std::uint64_t>>{
             {{{"mapping", "shared"}}, 4},
             {{{"mapping", "per_node"}}, 4},
             {{{"mapping", "per_task"}}, 1},
             {{{"mapping", "per_group"}, {"group_size", 2}}, 2},
             {{{"mapping", "per_group"}, {"group_size", 1}}, 1},
             {{{"mapping", "many"}, {"count", 3}}, 1},
         }) {
        CAPTURE(files.dump());
        CHECK(at_most(files, four, most / share));
        CHECK_FALSE(at_most(files, four, most / share + 1));
    }
}

TEST_CASE("rules about files, backends and how they are opened") {
    const json mpi = "mpiio";
    hold({
        {data_plan(), {{"/data/files", {{"group_size", 2}}}}, "group_size is only used with", {}},
        {data_plan(),
         {{"/data/files", {{"mapping", "shared"}, {"directories", "per_task"}}}},
         "does not go with one shared file",
         {{"/data/files", {{"mapping", "per_task"}, {"directories", "per_task"}}}}},
        {data_plan(), {{"/data/io/view", true}}, "io.view needs backend = \"mpiio\"", {}},
        {data_plan(),
         {{"/data/io/hints", {{"a", "b"}}}},
         "io.hints needs backend = \"mpiio\"",
         {{"/data/io", json::object()}}},
        {data_plan(),
         {{"/data/backend", mpi},
          {"/data/files/mapping", "shared"},
          {"/data/io/collective", true},
          {"/tasks/threads", 2}},
         "needs tasks.threads = 1",
         {{"/data/backend", mpi},
          {"/data/files/mapping", "shared"},
          {"/data/io/collective", true},
          {"/tasks/threads", 1}}},
        {data_plan(),
         {{"/data/backend", mpi}, {"/data/files/mapping", "per_task"}, {"/data/io/collective", true}},
         "collective calls join all tasks",
         {}},
        {data_plan(),
         {{"/data/backend", mpi}, {"/data/files/mapping", "per_task"}, {"/data/io/view", true}},
         "io.view needs order = \"sequential\"",
         {{"/data/backend", mpi}, {"/data/files/mapping", "shared"}, {"/data/io/view", true}}},
        {data_plan(),
         {{"/data/backend", mpi},
          {"/data/files/mapping", "shared"},
          {"/data/io/view", true},
          {"/data/access/order", "reverse"}},
         "io.view needs order = \"sequential\"",
         {}},
        {data_plan(),
         {{"/data/io/direct", true}, {"/data/access", {{"transfer", 513}}}},
         "transfer is 513 B, but direct I/O",
         {{"/data/io/direct", true}, {"/data/access", {{"transfer", 512}}}}},
        {data_plan(),
         {{"/data/io/direct", true}, {"/data/access/offset", 1}},
         "access.offset is 1 B, but direct I/O",
         {}},
        {data_plan(), {{"/data/io/direct", true}, {"/data/access/gap", 1}}, "access.gap is 1 B, but direct I/O", {}},
        {data_plan(), {{"/data/backend", "mmap"}, {"/data/io/direct", true}}, "io.direct does not go with backend", {}},
        {data_plan(), {{"/data/io/queue_depth", 2}}, "does one operation at a time", {{"/data/io/queue_depth", 1}}},
        {data_plan(),
         {{"/data/backend", "io_uring"}, {"/data/io/queue_depth", 2}, {"/data/io/pause", "1ms"}},
         "io.pause needs queue_depth = 1",
         {{"/data/backend", "io_uring"}, {"/data/io/queue_depth", 2}}},
        {data_plan(), {{"/phases/1/files", {0}}}, "files is only used with files.mapping = \"many\"", {}},
        {many_plan(), {{"/phases/1/files", {4}}}, "names file 4, but files.count is 4", {{"/phases/1/files", {3}}}},
        {many_plan(), {{"/phases/1/barrier", "intra"}}, "opened one after the other", {}},
        {data_plan(),
         {{"/data/files/mapping", "per_node"}, {"/phases/1/op", "remove"}},
         "needs files of one task each",
         {{"/data/files/mapping", "shared"}, {"/phases/1/op", "remove"}}},
        {data_plan(),
         {{"/data/files/mapping", "shared"}, {"/phases/1/op", "stat"}},
         "needs files of one task each",
         {{"/data/files/mapping", "per_task"}, {"/phases/1/op", "stat"}}},
        {data_plan(),
         {{"/phases/0/suffix", ".x"}, {"/phases/1/suffix", ".x"}},
         "suffix is only used with data.files.paths",
         {}},
    });
}

TEST_CASE("rules about files that lie where others put them") {
    const auto in_place = [](const json& files) {
        json plan = data_plan();
        plan["target"]["use_existing"] = true;
        plan["data"]["files"] = files;
        return plan;
    };
    const json one = {{"mapping", "shared"}, {"paths", {"/tmp/a"}}};
    const json two = {{"mapping", "per_task"}, {"paths", {"/tmp/a", "/tmp/b"}}};
    hold({
        {in_place(one), {{"/data/files/mapping", "per_node"}}, "paths goes with mapping", {}},
        {in_place(one), {{"/data/files/mapping", "many"}}, "paths goes with mapping", {}},
        {in_place(two), {{"/data/files/mapping", "shared"}}, "with more than one path needs", {}},
        {in_place(two), {{"/data/files/directories", "per_task"}}, "with more than one path needs", {}},
        {in_place(one), {{"/data/files/directories", "per_node"}}, "does not go with paths", {}},
        {in_place(one), {{"/target/use_existing", false}}, "must have use_existing and no directory", {}},
        {in_place(one), {{"/target/directory", "d"}}, "must have use_existing and no directory", {}},
        {in_place(one), {{"/phases/1/process", "separate"}}, "no run directory for a manifest", {}},
        {in_place(one), {}, "", {{"/phases/1/suffix", ".x"}, {"/phases/0/suffix", ".x"}}},
    });
}

TEST_CASE("rules about files that are dealt out over several directories") {
    json across = data_plan();
    across["data"]["files"] = {{"mapping", "per_task"}, {"across", {"/a", "/b"}}};
    const json many = {{"mapping", "many"}, {"count", 2}, {"across", {"/a"}}};
    const json group = {{"mapping", "per_group"}, {"group_size", 2}, {"across", {"/a"}}};
    hold({
        {across, {{"/data/files/mapping", "shared"}}, "deals out the files of tasks", {{"/data/files", many}}},
        {across, {{"/data/files/mapping", "per_node"}}, "deals out the files of tasks", {{"/data/files", group}}},
        {across,
         {{"/data/files/directories", "per_node"}},
         "does not go with across",
         {{"/data/files/directories", "per_task"}}},
        {across, {{"/data/files/across/0", "a"}}, "not the path of a directory from the root", {}},
        {across, {{"/data/files/across/0", "/b"}}, "names /b twice", {}},
        {across, {{"/data/files/across/0", "/tmp"}}, "or the target itself", {}},
        {across, {{"/target/use_existing", true}}, "leave out target.use_existing", {}},
        {across, {{"/target/striping", {{"count", 1}}}}, "a layout of its own", {}},
        {across,
         {{"/phases/1/before", json::parse(R"([{"kind": "remount"}])")}},
         "mounts one file system anew",
         {{"/phases/1/before", json::parse(R"([{"kind": "drop_page_cache"}])")}}},
        {across, {}, "", {{"/phases/1/process", "separate"}}},
    });
}

TEST_CASE("rules about when a phase ends and what comes before it") {
    hold({
        {data_plan(),
         {{"/phases/0/stop", {{"stonewall", "1s"}, {"min_time", "1001ms"}}}},
         "is longer than stop.stonewall",
         {{"/phases/0/stop", {{"stonewall", "1s"}, {"min_time", "1s"}}}}},
        {data_plan(), {{"/phases/0/stop", {{"time", "1s"}, {"min_time", "1s"}}}}, "stands alone", {}},
        {data_plan(), {{"/phases/0/stop", {{"time", "1s"}, {"first_done", true}}}}, "stands alone", {}},
        {data_plan(),
         {{"/phases/0/stop", {{"stonewall", "1s"}, {"wearout", true}, {"first_done", true}}}},
         "does not go with wearout",
         {{"/phases/0/stop", {{"stonewall", "1s"}, {"first_done", true}}}}},
        {data_plan(), {{"/phases/0/stop/items", 1}}, "counts the items of a tree", {{"/phases/0/stop/operations", 1}}},
        {data_plan(), {{"/phases/0/stop/operations", 0}}, "whole number from 1 up", {{"/phases/0/stop/operations", 1}}},
        {tree_plan(), {{"/phases/1/stop/items", 0}}, "whole number from 1 up", {{"/phases/1/stop/items", 1}}},
        {tree_plan(), {{"/phases/1/stop/operations", 1}}, "for a tree use stop.items", {}},
        {tree_plan(), {{"/phases/0/stop/items", 1}}, "works on directories", {}},
        {tree_plan(),
         {{"/phases/1/stop/time", "1s"}},
         "must not repeat op = \"create\"",
         {{"/phases/2/stop/time", "1s"}}},
        {tree_plan(), {{"/phases/1/stop/min_time", "1s"}}, "must not repeat", {{"/phases/2/stop/min_time", "1s"}}},
        {tree_plan(),
         {{"/phases/0/stop", {{"stonewall", "1s"}, {"wearout", true}}}},
         "has no meaning for op = \"mktree\"",
         {{"/phases/1/stop", {{"stonewall", "1s"}, {"wearout", true}}}}},
        {data_plan(), {{"/limits/begin", 0}}, "limits.begin must be more than zero", {{"/limits/begin", "1ns"}}},
        {data_plan(), {{"/observe/slice", "999ns"}}, "from 1 us to 1 min", {{"/observe/slice", "1us"}}},
        {data_plan(), {{"/observe/slice", "61s"}}, "from 1 us to 1 min", {{"/observe/slice", "1min"}}},
        {data_plan(),
         {{"/calibrated", {"data.access.block"}}},
         "calibrated names",
         {{"/calibrated", {"data.files.count"}}}},
        {data_plan(),
         {{"/data/backend", "paced"}, {"/data/paced/latency", "3601s"}},
         "must be at most 1 h",
         {{"/data/backend", "paced"}, {"/data/paced/latency", "1h"}}},
    });
}

TEST_CASE("rules about lanes, verification and whose data is read") {
    hold({
        {duplex_plan(), {{"/phases/1/lanes/0/op", "write"}}, "must be two: one that writes", {}},
        {duplex_plan(),
         {{"/phases/1/lanes", lanes("first_half", "first_half")}},
         "must both run on the same tasks",
         {{"/phases/1/lanes", lanes("first_half", "second_half")}}},
        {duplex_plan(), {{"/phases/1/lanes", lanes("same", "second_half")}}, "must both run on the same tasks", {}},
        {duplex_plan(), {{"/phases/1/lanes/1/file", 0}}, "and different files", {{"/phases/1/lanes/1/file", 3}}},
        {duplex_plan(), {{"/phases/1/lanes/1/file", 4}}, "name file 4, but files.count is 4", {}},
        {duplex_plan(), {{"/data/files/count", 1}}, "need files.mapping = \"many\"", {{"/data/files/count", 2}}},
        {data_plan(),
         {{"/data/verify", "on_read"}, {"/data/payload/kind", "zero"}},
         "a hole would pass",
         {{"/data/verify", "none"}, {"/data/payload/kind", "zero"}}},
        {data_plan(),
         {{"/data/verify", "on_read"}, {"/phases/0/access", {{"order", "random_replace"}}}},
         "cannot be exact: phase \"w\"",
         {{"/data/verify", "on_read"}, {"/phases/1/access", {{"order", "random_replace"}}}}},
        {data_plan(),
         {{"/data/verify", "readback"}, {"/phases/0/access", {{"order", "random_replace"}}}},
         "readback cannot be exact",
         {{"/data/verify", "readback"}, {"/phases/1/access", {{"order", "random_replace"}}}}},
        {data_plan(),
         {{"/data/verify", "both"}, {"/phases/0/access", {{"order", "random_replace"}}}},
         "cannot be exact",
         {{"/data/verify", "both"}}},
        {data_plan(),
         {{"/phases/1", {{"id", "x"}, {"op", "mixed"}, {"access", {{"read_ratio", 1.5}}}}}},
         "read_ratio",
         {{"/phases/1", {{"id", "x"}, {"op", "mixed"}, {"access", {{"read_ratio", 1.0}}}}}}},
        {data_plan(),
         {{"/phases/0/op", "rewrite"}},
         "no earlier phase writes the data",
         {{"/phases/0/op", "rewrite"}, {"/target/use_existing", true}}},
        {data_plan(),
         {{"/phases/0/op", "read"}},
         "no earlier phase writes the data",
         {{"/phases/0/op", "read"}, {"/data/backend", "null"}}},
    });
}

TEST_CASE("rules about whose files a task takes") {
    const auto shifted = [](const json& shift, int used) {
        json plan = data_plan();
        plan["phases"][1]["shift"] = shift;
        if (used > 0) {
            plan["tasks"] = {{"threads", 4}, {"used", used}};
        }
        return said_of(plan, {});
    };
    const json list = {{"by", "list"}, {"owners", {1, 0}}};
    CHECK(shifted(list, 0) == "");
    CHECK(shifted(list, 2) == "");
    CHECK(shifted(list, 3).find("must name one of the 3 tasks for each of them") != std::string::npos);
    CHECK(shifted({{"by", "list"}, {"owners", {2, 0}}}, 0).find("must name one of the 2 tasks") != std::string::npos);
    CHECK(shifted({{"by", "list"}}, 0).find("goes with by = \"list\"") != std::string::npos);
    CHECK(shifted({{"by", "tasks"}, {"owners", {1, 0}}}, 0).find("goes with by = \"list\"") != std::string::npos);
    json plan = data_plan();
    plan["phases"][1] = {{"id", "x"}, {"op", "remove"}, {"shift", {{"by", "random"}}}};
    CHECK(said_of(plan, {}).find("may let two tasks remove the same file") != std::string::npos);
    plan["phases"][1]["shift"] = list;
    CHECK(said_of(plan, {}).find("may let two tasks remove the same file") != std::string::npos);
    plan["phases"][1]["shift"] = {{"by", "permute"}};
    CHECK(said_of(plan, {}) == "");
    CHECK(said_of(tree_plan(), {{"/phases/1/shift/by", "tasks"}}).find("is for what comes after") != std::string::npos);
    json tree = tree_plan();
    tree["phases"][2]["op"] = "remove";
    CHECK(said_of(tree, {{"/phases/2/shift/by", "random"}}).find("lets two tasks change the same item") !=
          std::string::npos);
    CHECK(said_of(tree, {{"/phases/2/shift/by", "permute"}}) == "");
    CHECK(said_of(tree_plan(), {{"/phases/2/shift/by", "random"}}) == "");
}

TEST_CASE("rules about trees and the items in them") {
    const json deep = {{"depth", 318}, {"branching", 1}, {"items_per_dir", 1}};
    hold({
        {tree_plan(), {{"/meta/tree", json::object()}}, "has no items", {{"/meta/tree/items_per_dir", 1}}},
        {tree_plan(),
         {{"/meta/tree", {{"items_per_task", 7}, {"branching", 2}, {"depth", 1}}}},
         "items_per_task",
         {{"/meta/tree", {{"items_per_task", 6}, {"branching", 2}, {"depth", 1}}}}},
        {tree_plan(), {{"/meta/tree/items_per_task", 6}}, "items_per", {}},
        {tree_plan(),
         {{"/meta/tree/depth", 400}},
         "so paths would be longer than the 4096 B that the system allows: at most",
         {{"/meta/tree", deep}}},
        {tree_plan(), {{"/meta/names/file", "branch"}}, "must differ from each other", {{"/meta/names/file", "x"}}},
        {tree_plan(), {{"/meta/names", {{"file", "dir"}}}}, "must differ from each other", {}},
        {tree_plan(), {{"/meta/names/directory", "branch"}}, "must differ from each other", {}},
        {tree_plan(), {{"/meta/names/file", "a/b"}}, "file", {}},
        {tree_plan(),
         {{"/meta/file/write", (1 << 30) + 1}},
         "write is more than 1 GiB",
         {{"/meta/file/write", 1 << 30}}},
        {tree_plan(), {{"/meta/file/read", (1 << 30) + 1}}, "read is more than 1 GiB", {}},
        {tree_plan(),
         {{"/meta/file", {{"create", "mknod"}, {"write", 1}}}},
         "so file.write must be 0",
         {{"/meta/file", {{"create", "mknod"}}}}},
        {tree_plan(), {{"/meta/file", {{"create", "mknod"}, {"fsync", true}}}}, "there is nothing to fsync", {}},
        {tree_plan(),
         {{"/phases/1/meta/select/order", "zipf"}},
         "must be creation or permute",
         {{"/phases/1/meta/select/order", "permute"}}},
        {tree_plan(),
         {{"/phases/1/meta/select/order", "replace"}},
         "must be creation or permute",
         {{"/phases/2/meta/select/order", "replace"}}},
        {tree_plan(),
         {{"/phases/2/op", "rename"}, {"/meta/select/order", "permute"}},
         "must be creation: each item",
         {{"/phases/2/op", "rename"}}},
        {tree_plan(),
         {{"/phases/2/op", "rename"}, {"/meta/file/shared_single", true}},
         "take names from each other",
         {}},
        {tree_plan(),
         {{"/phases/2/op", "open_close"}, {"/meta/objects", "directories"}},
         "only files are opened",
         {{"/meta/objects", "directories"}}},
        {tree_plan(),
         {{"/meta/tree/home_shift", 1}},
         "is only used with scope = \"per_task\"",
         {{"/meta/tree/home_shift", 1}, {"/meta/tree/scope", "per_task"}}},
        {tree_plan(),
         {{"/phases/2", {{"id", "r"}, {"op", "read"}, {"verify", "on_read"}}}},
         "needs meta.file.read from 1 B",
         {{"/phases/2", {{"id", "r"}, {"op", "read"}, {"verify", "on_read"}}},
          {"/meta/file", {{"write", 9}, {"read", 9}}}}},
        {tree_plan(),
         {{"/phases/2", {{"id", "r"}, {"op", "read"}, {"verify", "on_read"}}},
          {"/meta/file", {{"write", 9}, {"read", 10}}}},
         "to the 9 B that file.write puts",
         {}},
        {tree_plan(),
         {{"/meta/verify", "on_read"}, {"/meta/file", {{"shared_single", true}, {"write", 1}, {"read", 1}}}},
         "which task wrote last is not known",
         {}},
        {tree_plan(),
         {{"/meta/verify", "on_read"}, {"/meta/file/write", 1}, {"/meta/payload/kind", "zero"}},
         "a hole would pass",
         {{"/meta/verify", "on_read"}, {"/meta/payload/kind", "zero"}}},
        {tree_plan(), {{"/phases/1/access", {{"transfer", 1}}}}, "belongs to meta", {}},
        {tree_plan(), {{"/phases/1/io", json::object()}}, "belongs to meta", {}},
        {tree_plan(), {{"/phases/1/meta", 3}}, "must be an object", {{"/phases/1/meta", json::object()}}},
        {tree_plan(), {{"/phases/0/on", "data"}}, "works on a tree: leave it out", {{"/phases/0/on", "meta"}}},
        {tree_plan(), {{"/phases/1/barrier", "intra"}}, "nothing between open and close", {}},
        {tree_plan(), {{"/phases/1/files", {0}}}, "so it has no lanes and no files", {}},
        {tree_plan(),
         {{"/phases/0/process", "separate"}},
         "no meaning for the first phase",
         {{"/phases/1/process", "separate"}}},
        {data_plan(), {{"/phases/1/meta", json::object()}}, "works on data: say on = \"meta\"", {}},
        {tree_plan(),
         {{"/meta/lookup/fields", {"size", "color"}}},
         "holds \"color\"",
         {{"/meta/lookup/fields", {"size"}}}},
    });
}

TEST_CASE("rules about what a walk searches for") {
    const auto find = [](const json& value) {
        return said_of(tree_plan(), {{"/phases/2", {{"id", "f"}, {"op", "walk"}, {"meta", {{"find", value}}}}}});
    };
    for (const json& good : {json{{"name", "a*"}}, json{{"type", "file"}}, json{{"size", 0}}, json{{"newer_than", 9e9}},
                             json{{"size_min", 3}, {"size_max", 3}}, json{{"newer_than_file", "x"}},
                             json{{"name", std::string(255, 'x')}}}) {
        CHECK(find(good) == "");
    }
    for (const auto& [wrong, says] : std::vector<std::pair<json, const char*>>{
             {json::object(), "everything would be found"},
             {{{"name", std::string(256, 'x')}}, "at most 255 bytes"},
             {{{"name", "a/b"}}, "without '/'"},
             {{{"size", 1}, {"size_min", 1}}, "is the exact size"},
             {{{"size", 1}, {"size_max", 1}}, "is the exact size"},
             {{{"size_min", 4}, {"size_max", 3}}, "nothing could be found"},
             {{{"newer_than", 1}, {"newer_than_file", "x"}}, "exclude each other"},
             {{{"newer_than", 9.1e9}}, "newer_than"},
             {{{"newer_than_file", ""}}, "is empty: name a file"},
         }) {
        CAPTURE(says);
        CHECK(find(wrong).find(says) != std::string::npos);
    }
}

TEST_CASE("rules about windows and cycles") {
    hold({
        {cycle_plan(),
         {{"/meta/window", {{"first", 7}, {"count", 4}}}},
         "reach beyond the 10 items of a directory",
         {{"/meta/window", {{"first", 6}, {"count", 4}}}, {"/phases/1/op", "stat"}, {"/phases/1/on", "meta"}}},
        {cycle_plan(),
         {{"/meta/cycle/working", 6}},
         "makes items beyond tree.items_per_dir",
         {{"/meta/cycle/working", 5}}},
        {cycle_plan(), {}, "", {{"/meta/cycle", {{"working", 9}, {"keep", true}}}}},
        {cycle_plan(),
         {{"/meta/payload/kind", "stamped"}},
         "needs a payload.kind that tells itself",
         {{"/meta/payload/kind", "ior_offset"}}},
        {cycle_plan(), {}, "", {{"/meta/payload/kind", "ior_incompressible"}}},
        {cycle_plan(), {}, "", {{"/meta/payload/kind", "ior_random"}}},
        {cycle_plan(), {{"/meta/lookup/paths", "relative"}}, "goes with select.order", {}},
        {cycle_plan(), {{"/meta/select/order", "permute"}}, "goes with select.order", {}},
        {cycle_plan(), {{"/meta/by_first", true}}, "goes with select.order", {}},
        {cycle_plan(), {{"/meta/file/shared_single", true}}, "goes with select.order", {}},
        {cycle_plan(), {{"/meta/tree/scope", "shared"}}, "\"cycle\" needs meta.window", {}},
        {cycle_plan(), {{"/meta/tree/depth", 1}}, "\"cycle\" needs meta.window", {}},
        {cycle_plan(), {{"/meta/file/create", "mknod"}}, "\"cycle\" needs meta.window", {}},
        {cycle_plan(), {{"/meta/file/read", 8}}, "the same number of bytes, at least one", {}},
        {cycle_plan(), {{"/meta/file", json::object()}}, "the same number of bytes, at least one", {}},
        {cycle_plan(),
         {{"/phases/1/stop/items", 1}},
         "does not end op = \"cycle\"",
         {{"/phases/1/stop/stonewall", "1s"}}},
    });
}
