// SPDX-License-Identifier: Apache-2.0
// Limits of a plan's numbers and names: the last value that is taken, and the first that is refused.
#include "rejected_plans.hpp"

using nlohmann::json;
using sonde::tests::Changes;
using sonde::tests::data_plan;
using sonde::tests::error_of;
using sonde::tests::many_plan;
using sonde::tests::tree_plan;

namespace {

/// A member and values of it. The error of a rejected value begins with the member's name where the plan's part is
/// read; in any case it contains `expected_text`.
struct MemberLimit {
    const char* pointer;
    std::vector<json> accepted_values, rejected_values;
    const char* expected_text;
};

void check_limits(const json& plan, const std::vector<MemberLimit>& borders, const Changes& other_changes = {}) {
    const auto sentence_for = [&](const char* pointer, const json& value) {
        Changes changes = other_changes;
        changes.emplace_back(pointer, value);
        return error_of(plan, changes);
    };
    for (const MemberLimit& border : borders) {
        CAPTURE(border.pointer);
        for (const json& value : border.accepted_values) {
            CAPTURE(value.dump(-1, ' ', true));
            CHECK(sentence_for(border.pointer, value) == "");
        }
        for (const json& value : border.rejected_values) {
            CAPTURE(value.dump(-1, ' ', true));
            const std::string sentence = sentence_for(border.pointer, value);
            CAPTURE(sentence);
            CHECK(sentence.rfind("plan: ", 0) == 0);
            CHECK(sentence.find(border.expected_text) != std::string::npos);
        }
    }
}

const std::string with_nul = std::string("a\0b", 3);

/// Names of 1 to 128 bytes that are one part of a path and not hidden.
std::vector<json> plain_names() {
    return {"x", "x.y", std::string(128, 'x')};
}
std::vector<json> no_plain_names() {
    return {"", "a/b", ".x", with_nul, std::string(129, 'x')};
}

}  // namespace

TEST_CASE("limits_of_identifiers_target_tasks_observation") {
    const std::string hundred(100, 'i');
    check_limits(
        data_plan(),
        {{"/id", {hundred, "a.b_c-9", "-x"}, {hundred + "i", ".x", "a b", "a/b", "a\xc3\xa4", 7}, "id is "},
         {"/id", {}, {7}, "but must be text"},
         {"/title", {"", "any text"}, {7}, "title is 7, but must be text"},
         {"/target/path", {"/tmp"}, {"", with_nul}, "target.path must name a directory"},
         {"/target/directory", {"d", "...", ".d"}, {".", "..", "a/b", with_nul}, "target.directory must be one name"},
         {"/target/keep", {true}, {1, "yes"}, "but must be true or false"},
         {"/target/min_free", {0, "0", INT64_MAX}, {-1, 1.5, true, 9'223'372'036'854'775'808ULL}, "target.min_free is"},
         {"/target/full_stripe", {"1MiB", 1}, {"1M", -1}, "target.full_stripe is"},
         {"/target/striping/count", {-1, 1, 65534}, {-2, 0, 65535}, "target.striping.count is"},
         {"/target/striping/size",
          {65536, 4'294'901'760},
          {0, 65535, 98304, 4'294'967'296},
          "a multiple of 64 KiB below"},
         {"/target/striping/pool",
          {"flash"},
          {"a b", "a/b", "a\nb", with_nul},
          "target.striping.pool must be one name"},
         {"/target/striping/start", {0, 65534}, {-1, 65535}, "target.striping.start is"},
         {"/target/striping", {}, {json::object(), {{"pool", ""}}}, "target.striping says nothing"},
         {"/tasks/processes", {1, 65536}, {0, 65537}, "tasks.processes is"},
         {"/tasks/threads", {1, 4096}, {0, 4097}, "tasks.threads is"},
         {"/tasks/active", {1, 1 << 28}, {0, (1 << 28) + 1}, "tasks.active is"},
         {"/observe/max_slices", {16, 65536}, {15, 65537}, "observe.max_slices is"},
         {"/observe/slice", {"1us", "1min"}, {"999ns", "60000000001ns"}, "observe.slice must be from 1 us to 1 min"},
         {"/observe/progress", {0, "0s", 3.2e9}, {-1, 3.3e9, true, "soon"}, "observe.progress is"},
         {"/limits/time", {"1ns"}, {0, "0s"}, "limits.time must be more than zero"},
         {"/limits/begin", {"1ns"}, {0, "0s"}, "limits.begin must be more than zero"},
         {"/calibrated",
          {json::array(), {"data.access.volume", "data.files.count"}},
          {{"data.access"}, {"data.files.count", "x"}},
          "but may name data.access.volume and data.files.count only"},
         {"/calibrated", {}, {{1}}, "calibrated must be a list of texts"},
         {"/calibrated", {}, {"x", json::object()}, "must be a list with at least one entry"}});
}

TEST_CASE("limits_of_file_names_and_access") {
    check_limits(
        data_plan(),
        {{"/data/files/name", plain_names(), no_plain_names(), "data.files.name must be a plain file name"},
         {"/data/files/suffix", {""}, {"a/b", with_nul}, "data.files.suffix must be the end of a file name"},
         {"/data/files/across", {{"/a"}, json::array()}, {{""}, {"a"}, {"/" + with_nul}}, "data.files.across holds"},
         {"/data/files/count", {1}, {0, 100'000'001}, "data.files.count is"},
         {"/data/files/group_size", {}, {0, (1 << 24) + 1}, "data.files.group_size is"},
         {"/data/access/block", {4096}, {0, 4097, 6144}, "but must be a multiple of transfer (4096 B)"},
         {"/data/access/segments", {1}, {0, -1, 1.5, "2"}, "data.access.segments is"},
         {"/data/access/seed", {0, INT64_MAX}, {-1}, "data.access.seed is -1, but must be a whole number from 0 up"},
         {"/data/io/pause", {"1ms"}, {-1}, "data.io.pause is"},
         {"/data/io/hints", {json::object()}, {{{"a", 1}}}, "hints.a must be text"},
         {"/data/payload/seed", {0, INT64_MAX}, {-1}, "data.payload.seed is"},
         {"/data/payload/compressible", {0, 1}, {-0.001, 1.001, "x"}, "data.payload.compressible is"},
         {"/data/payload/duplicates", {0, 1}, {-0.001, 1.001}, "data.payload.duplicates is"},
         {"/data/payload/period",
          {4096, 64 << 20},
          {0, 2048, 4095, 6000, 128 << 20},
          "data.payload.period must be a power of two from 4 KiB to 64 MiB"}});
    check_limits(many_plan(), {{"/data/files/count", {1, 100'000'000}, {0, 100'000'001}, "data.files.count is"}});
    check_limits(data_plan(),
                 {{"/data/files/group_size", {1, 1 << 24}, {0, (1 << 24) + 1}, "data.files.group_size is"}},
                 {{"/data/files/mapping", "per_group"}});
    check_limits(data_plan(), {{"/data/io/queue_depth", {1, 4096}, {0, 4097}, "data.io.queue_depth is"}},
                 {{"/data/backend", "io_uring"}});
    check_limits(data_plan(), {{"/data/access/within", {4096, 1 << 30}, {0, 4095, 4097}, "data.access.within is"}},
                 {{"/data/access/order", "random_replace"}});
    json existing = data_plan();
    existing["target"]["use_existing"] = true;
    existing["data"]["files"] = {{"mapping", "per_task"}};
    check_limits(existing, {{"/data/files/paths",
                             {{"a"}, {"/a/b", "c"}, json::array()},
                             {{""}, {"a/"}, {with_nul}},
                             "which does not name a file"}});
    json mixed = data_plan();
    mixed["phases"][1] = {{"id", "m"}, {"op", "mixed"}};
    check_limits(mixed, {{"/phases/1/access/read_ratio", {0, 1, 0.5}, {-0.001, 1.001, "x"}, "access.read_ratio is"}});
}

TEST_CASE("limits_of_volume_and_sizes") {
    constexpr std::uint64_t largest = 1ULL << 62U;
    json plan = data_plan();
    plan["data"]["access"] = {{"transfer", 4096}, {"volume", 1}};
    const MemberLimit beyond[] = {
        {"/data/access/block", {largest - 4096}, {largest}, "data.access reaches beyond the largest file (4 EiB)"},
        {"/data/access/gap", {largest - 1}, {largest}, "data.access reaches beyond the largest file (4 EiB)"},
        {"/data/access/offset", {largest - 1}, {largest}, "data.access reaches beyond the largest file (4 EiB)"}};
    for (const MemberLimit& border : beyond) {
        check_limits(plan, {border});
        const std::string sentence = error_of(plan, {{border.pointer, border.rejected_values[0]}});
        CHECK(sentence.ends_with("(4 EiB)"));  // not for the number of segments, of which the plan says nothing
    }
    check_limits(plan, {{"/data/access/stride", {4096, largest - 1}, {largest, 4095}, "data.access"}},
                 {{"/data/access/order", "stride"}});
    check_limits(plan, {{"/data/access/volume/x", {0.001, 1e6}, {0, -1, 1.1e6}, "data.access.volume.x"}},
                 {{"/data/access/volume", {{"of", "node_memory"}}}});
    check_limits(plan, {{"/data/access/volume/bytes", {1, "1PiB"}, {0, -1, "x"}, "data.access.volume"}},
                 {{"/data/access/volume", {{"per", "total"}}}});
    CHECK(error_of(plan, {{"/data/access/volume", {{"per", "total"}}}}) ==
          "plan: data.access.volume.bytes is missing: say how many, or use of = \"node_memory\"");
    CHECK(error_of(plan, {{"/data/access/volume", {{"of", "node_memory"}, {"bytes", 0}}}}) == "");
}

TEST_CASE("segment_limit_with_gap_offset_stride") {
    const auto most = [](json access, std::uint64_t segments) {
        json plan = data_plan();
        access["transfer"] = 1;
        plan["data"] = {{"files", {{"mapping", "per_task"}}}, {"access", access}};
        const auto fits = [&](std::uint64_t number) {
            plan["data"]["access"]["segments"] = number;
            const std::string sentence = error_of(plan, {});
            CHECK((sentence.empty() || sentence ==
                                           "plan: data.access reaches beyond the largest file (4 EiB): check segments, "
                                           "stride, gap and offset"));
            return sentence.empty();
        };
        return fits(segments) && !fits(segments + 1);
    };
    constexpr std::uint64_t TiB = 1ULL << 40U;
    CHECK(most({{"block", TiB}, {"gap", TiB}}, 1U << 21U));
    CHECK(most({{"block", TiB}, {"offset", TiB}}, (1U << 22U) - 1));
    CHECK(most({{"block", TiB}, {"offset", 1}}, (1U << 22U) - 1));
    CHECK(most({{"block", 4}, {"order", "stride"}, {"stride", TiB}}, 1U << 20U));  // four transfers a block
    CHECK(most({{"block", 1}, {"order", "stride"}, {"stride", TiB}}, 1U << 22U));
}

TEST_CASE("limits_of_paced_backend") {
    check_limits(
        data_plan(),
        {{"/data/paced/latency", {"3600000000000ns"}, {"3600000000001ns"}, "latency must be at most 1 h"},
         {"/data/paced/fail_errno", {1, 133}, {0, 134}, "data.paced.fail_errno is"},
         {"/data/paced/fail_after", {0, INT64_MAX}, {-1}, "data.paced.fail_after is"},
         {"/data/paced/rate", {1, 1e18, "1B/s"}, {0.5, 2e18, "x", "0.5B/s", -1, true}, "data.paced.rate is"},
         {"/data/paced/delays/sync", {"1s"}, {-1}, "data.paced.delays.sync is"},
         {"/data/paced/slow_tasks",
          {{{"0", 1e-6}}, {{"12", 1e6}}, json::object()},
          {{{"-1", 2}}, {{"x", 2}}, {{"", 2}}, {{"1x", 2}}, {{"1", 0}}, {{"1", 9e-7}}, {{"1", 1.1e6}}, {{"1", "2"}}},
          "must be a task number with a factor from 1e-6 to 1e6"},
         {"/data/paced/schedule",
          {json::parse(R"([{"at": 0, "rate": 5}, {"at": "1ns", "rate": 6}])"), json::parse(R"([{"rate": 5}])")},
          {json::parse(R"([{"at": "1ns", "rate": 5}])"),
           json::parse(R"([{"at": 0, "rate": 5}, {"at": 2, "rate": 6}, {"at": 2, "rate": 6}])"),
           json::parse(R"([{"at": 0, "rate": 5}, {"at": 2, "rate": 6}, {"at": 1, "rate": 6}])")},
          "data.paced.schedule must begin at 0 and have ascending times"}});
    CHECK(error_of(data_plan(), {{"/data/paced", json::parse(R"({"rate": 5, "schedule": [{"at": 0, "rate": 5}]})")}}) ==
          "plan: data.paced.schedule and rate exclude each other: keep one");
}

TEST_CASE("limits_of_phases_and_treatments") {
    check_limits(
        data_plan(),
        {{"/phases/0/shift/n", {-(1 << 30), 1 << 30}, {-(1 << 30) - 1, (1 << 30) + 1}, "phases[0].shift.n is"},
         {"/phases/0/shift/seed", {0}, {-1}, "phases[0].shift.seed is"},
         {"/phases/0/stop/time", {"1ns", 1}, {0, "0s", "0.4ns"}, "phases[0].stop.time must be more than zero"},
         {"/phases/0/stop/stonewall", {"1ns"}, {0}, "phases[0].stop.stonewall must be more than zero"},
         {"/phases/0/stop/min_time", {"1ns"}, {0}, "phases[0].stop.min_time must be more than zero"},
         {"/phases/0/stop/operations", {1, INT64_MAX}, {0}, "phases[0].stop.operations is"},
         {"/phases/0/valid/max_residency", {0, 1}, {-0.001, 1.001}, "phases[0].valid.max_residency is"},
         {"/phases/0/valid/min_time", {0, "1s"}, {-1}, "phases[0].valid.min_time is"},
         {"/phases/0/before",
          {json::parse(R"([{"kind": "memory_hog", "fraction": 0.95}])"),
           json::parse(R"([{"kind": "sync", "fraction": 0, "max_residency": 0}])"),
           json::parse(R"([{"kind": "sync", "max_residency": 1}])"), json::array()},
          {json::parse(R"([{"kind": "memory_hog", "fraction": 0.951}])"), json::parse(R"([{"kind": "memory_hog"}])"),
           json::parse(R"([{"kind": "memory_hog", "fraction": -0.1}])"), json::parse(R"([{"kind": "command"}])"),
           json::parse(R"([{"kind": "sync", "max_residency": 1.01}])"),
           json::parse(R"([{"kind": "sync", "max_residency": -0.01}])")},
          "plan: phases[0].before[0]."},
         {"/phases/0/id", {"a"}, {"", "a b"}, "phases[0].id is"},
         {"/phases/1/op", {"reread"}, {"x", 7}, "phases[1]."}});
    check_limits(
        many_plan(),
        {{"/phases/1/files", {{0}, {0, 3}}, {{-1}, {4}, {1LL << 31U}, json::array(), "x"}, "phases[1].files"}});
}

TEST_CASE("limits_of_trees_and_names") {
    check_limits(
        tree_plan(),
        {{"/meta/names/branch", plain_names(), no_plain_names(), "meta.names.branch must be a plain name"},
         {"/meta/names/file", plain_names(), no_plain_names(), "meta.names.file must be a plain name"},
         {"/meta/names/directory", plain_names(), no_plain_names(), "meta.names.directory must be a plain name"},
         {"/meta/tree/top", plain_names(), no_plain_names(), "meta.tree.top must be a plain name"},
         {"/meta/tree/copies", {1, 1'000'000}, {0, 1'000'001}, "meta.tree.copies is"},
         {"/meta/tree/depth", {0, 318}, {-1, 100'001}, "meta.tree.depth is"},
         {"/meta/tree/branching", {1, 1'000'000'000}, {0, 1'000'000'001}, "meta.tree.branching is"},
         {"/meta/tree/items_per_dir", {1, 1'000'000'000'000}, {-1, 1'000'000'000'001}, "meta.tree.items_per_dir is"},
         {"/meta/select/exponent", {0.01, 10}, {0.009, 10.01}, "meta.select.exponent is"},
         {"/meta/select/seed", {0}, {-1}, "meta.select.seed is"},
         {"/meta/cycle/working", {1, 1'000'000'000'000}, {0, 1'000'000'000'001}, "meta.cycle.working is"},
         {"/meta/cycle/spread", {-(1 << 24), 1 << 24}, {-(1 << 24) - 1, (1 << 24) + 1}, "meta.cycle.spread is"},
         {"/meta/cycle/wait", {0, 1e6}, {-0.1, 1.1e6}, "meta.cycle.wait is"},
         {"/meta/file/write", {0, 1 << 30}, {(1 << 30) + 1}, "meta.file.write is more than 1 GiB"},
         {"/meta/file/read", {0, 1 << 30}, {(1 << 30) + 1}, "meta.file.read is more than 1 GiB"},
         {"/meta/lookup/fields", {json::array(), {"mode", "btime"}}, {{"modes"}, {3}}, "meta.lookup.fields holds"},
         {"/meta/verify", {"none"}, {"x"}, "verify is"}});
    check_limits(tree_plan(),
                 {{"/meta/tree/home_shift", {-(1 << 24), 1 << 24}, {-(1 << 24) - 1, (1 << 24) + 1}, "home_shift is"}},
                 {{"/meta/tree/scope", "per_task"}});
    json empty = tree_plan();
    empty["phases"] = json::parse(R"([{"id": "m", "op": "mktree"}])");
    CHECK(error_of(empty, {{"/meta/tree", json::object()}}) == "");  // a tree without items can be made
    check_limits(empty,
                 {{"/meta/tree/branching", {999'999'999}, {1'000'000'000}, "meta.tree.depth and branching make"}},
                 {{"/meta/tree", {{"depth", 1}}}});
    check_limits(empty, {{"/meta/tree/items_per_dir", {500'000'000'000}, {500'000'000'001}, "items a task"}},
                 {{"/meta/tree", {{"copies", 2}}}});
    check_limits(empty, {{"/meta/tree/items_per_dir", {250'000'000'000}, {250'000'000'001}, "items a task"}},
                 {{"/meta/tree", {{"depth", 1}, {"branching", 3}}}});
    check_limits(
        empty,
        {{"/meta/tree/items_per_task", {0, 18}, {1, 17, 19, -1, 1'000'000'000'001}, "meta.tree.items_per_task is"}},
        {{"/meta/tree", {{"depth", 2}, {"branching", 3}, {"leaf_only", true}, {"copies", 2}}}});
    CHECK(error_of(tree_plan(), {{"/meta/tree/depth", 319}}) ==
          "plan: meta.tree.depth is 319, so paths would be longer than the 4096 B that the system allows: at most 318 "
          "levels with these names");
    const json windows = {{"first", 0}, {"count", 0}};
    check_limits(tree_plan(),
                 {{"/phases/2/meta/window/first", {0, 10}, {11, -1}, "window"},
                  {"/phases/2/meta/window/count", {0, 10}, {11, -1}, "window"}},
                 {{"/phases/2/meta", {{"window", windows}, {"lookup", {{"paths", "full"}}}}}});
}

TEST_CASE("limits_of_entry_filters") {
    json walk = tree_plan();
    walk["phases"][2] = {{"id", "f"}, {"op", "walk"}, {"meta", {{"find", {{"type", "file"}}}}}};
    check_limits(walk, {{"/phases/2/meta/find/name",
                         {"", std::string(255, 'x')},
                         {std::string(256, 'x'), "a/b", with_nul},
                         "find.name must be a pattern of at most 255 bytes"},
                        {"/phases/2/meta/find/size", {0, "1PiB"}, {-1, "x"}, "find.size is"},
                        {"/phases/2/meta/find/size_min", {0, "1PiB"}, {-1, "x"}, "find.size_min is"},
                        {"/phases/2/meta/find/size_max", {0, "1PiB"}, {-1, "x"}, "find.size_max is"},
                        {"/phases/2/meta/find/newer_than", {0, 9e9}, {-0.1, 9.00001e9, "x"}, "find.newer_than is"},
                        {"/phases/2/meta/find/newer_than_file", {"x"}, {""}, "find.newer_than_file is empty"}});
    for (const char* condition : {"size", "size_min", "size_max", "newer_than"}) {
        CHECK(error_of(walk, {{"/phases/2/meta/find", {{condition, 0}}}}) == "");  // each is one, also with a zero
    }
    CHECK(error_of(walk, {{"/phases/2/meta/find/nam", "x"}}).ends_with("is not known; did you mean name?"));
    CHECK(error_of(walk, {{"/phases/2/meta/find", {{"size", 1}, {"sizemax", 1}}}}).ends_with("did you mean size_max?"));
}
