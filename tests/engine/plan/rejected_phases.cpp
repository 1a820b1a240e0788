// SPDX-License-Identifier: Apache-2.0
// Rules of plans about phases: when they end, which streams they have, whose files a task takes.
#include "rejected_plans.hpp"

using nlohmann::json;
using sonde::tests::check_rejections;
using sonde::tests::data_plan;
using sonde::tests::duplex_plan;
using sonde::tests::error_of;
using sonde::tests::tree_plan;

namespace {

json streams(const char* first, const char* second) {
    return json::parse(std::string(R"([{"id": "i", "op": "read", "file": 0, "tasks": ")") + first +
                       R"("}, {"id": "o", "op": "write", "file": 1, "tasks": ")" + second + R"("}])");
}

}  // namespace

TEST_CASE("stop_and_treatment_rules") {
    check_rejections({
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

TEST_CASE("stream_verification_and_source_rules") {
    check_rejections({
        {duplex_plan(), {{"/phases/1/streams/0/op", "write"}}, "must be two: one that writes", {}},
        {duplex_plan(),
         {{"/phases/1/streams", streams("first_half", "first_half")}},
         "must both run on the same tasks",
         {{"/phases/1/streams", streams("first_half", "second_half")}}},
        {duplex_plan(), {{"/phases/1/streams", streams("same", "second_half")}}, "must both run on the same tasks", {}},
        {duplex_plan(), {{"/phases/1/streams/1/file", 0}}, "and different files", {{"/phases/1/streams/1/file", 3}}},
        {duplex_plan(), {{"/phases/1/streams/1/file", 4}}, "name file 4, but files.count is 4", {}},
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

TEST_CASE("shift_rules") {
    const auto shifted = [](const json& shift, int active) {
        json plan = data_plan();
        plan["phases"][1]["shift"] = shift;
        if (active > 0) {
            plan["tasks"] = {{"threads", 4}, {"active", active}};
        }
        return error_of(plan, {});
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
    CHECK(error_of(plan, {}).find("may let two tasks remove the same file") != std::string::npos);
    plan["phases"][1]["shift"] = list;
    CHECK(error_of(plan, {}).find("may let two tasks remove the same file") != std::string::npos);
    plan["phases"][1]["shift"] = {{"by", "permute"}};
    CHECK(error_of(plan, {}) == "");
    CHECK(error_of(tree_plan(), {{"/phases/1/shift/by", "tasks"}}).find("is for what comes after") !=
          std::string::npos);
    json tree = tree_plan();
    tree["phases"][2]["op"] = "remove";
    CHECK(error_of(tree, {{"/phases/2/shift/by", "random"}}).find("lets two tasks change the same item") !=
          std::string::npos);
    CHECK(error_of(tree, {{"/phases/2/shift/by", "permute"}}) == "");
    CHECK(error_of(tree_plan(), {{"/phases/2/shift/by", "random"}}) == "");
}
