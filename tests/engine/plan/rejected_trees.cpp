// SPDX-License-Identifier: Apache-2.0
// Rules of plans about trees: their items, what a walk searches for, windows and cycles.
#include "rejected_plans.hpp"

using nlohmann::json;
using sonde::tests::check_rejections;
using sonde::tests::cycle_plan;
using sonde::tests::data_plan;
using sonde::tests::error_of;
using sonde::tests::tree_plan;

TEST_CASE("tree_and_item_rules") {
    const json deep = {{"depth", 318}, {"branching", 1}, {"items_per_dir", 1}};
    check_rejections({
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
        {tree_plan(), {{"/phases/1/files", {0}}}, "so it has no streams and no files", {}},
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

TEST_CASE("entry_filter_rules") {
    const auto find = [](const json& value) {
        return error_of(tree_plan(), {{"/phases/2", {{"id", "f"}, {"op", "walk"}, {"meta", {{"find", value}}}}}});
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

TEST_CASE("window_and_cycle_rules") {
    check_rejections({
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
        {cycle_plan(), {{"/meta/single_task", true}}, "goes with select.order", {}},
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
