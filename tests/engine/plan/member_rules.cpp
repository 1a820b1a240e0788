// SPDX-License-Identifier: Apache-2.0
// Rules between members, each with the case beside it that is allowed.
#include "rejected_plans.hpp"

using nlohmann::json;
using sonde::tests::check_rejections;
using sonde::tests::cycle_plan;
using sonde::tests::data_plan;
using sonde::tests::duplex_plan;
using sonde::tests::error_of;
using sonde::tests::many_plan;
using sonde::tests::tree_plan;

namespace {

/// The plan for data with these phases.
json with_phases(const char* phases) {
    json plan = data_plan();
    plan["phases"] = json::parse(phases);
    return plan;
}

/// The error text of a plan for data if unavailable backends are offered.
std::string error_of_phases(const sonde::plan::Capabilities& capabilities, const json& plan) {
    try {
        sonde::plan::parse_plan(plan.dump(), capabilities);
    } catch (const sonde::plan::PlanError& error) {
        return error.what();
    }
    return "";
}

}  // namespace

TEST_CASE("stop_within_refers_to_earlier_phase_on_same_tree") {
    json plan = tree_plan();
    plan["phases"].push_back(json::parse(R"({"id": "again", "op": "stat", "stop": {"within": "s"}})"));
    CHECK(error_of(plan, {}) == "");
    const char* const no_such = "but no earlier phase of that name does op = \"stat\"";
    check_rejections(
        {{plan, {{"/phases/3/stop/within", "x"}}, no_such, {}},
         {plan, {{"/phases/3/stop/within", "again"}}, no_such, {}},  // not itself
         {plan, {{"/phases/3/stop/within", "c"}}, no_such, {}},      // which creates
         {plan, {{"/phases/3/process", "separate"}}, "which runs in an earlier process", {}},
         {plan, {}, "", {{"/phases/2/process", "separate"}}},
         {plan, {{"/phases/1/stop/within", "m"}}, "is for what looks only, but op = \"create\" changes the tree", {}},
         {plan,
          {{"/phases/2/op", "readdir"}, {"/phases/3/op", "readdir"}},
          "counts items and entries, but op = \"readdir\" counts directories",
          {{"/phases/2/op", "walk"}, {"/phases/3/op", "walk"}}},
         {data_plan(),
          {{"/phases/1/stop/within", "w"}},
          "phases[1].stop.within is for walks and items of trees: for data give segments or volume",
          {}}});
    plan["phases"].push_back(json::parse(R"({"id": "third", "op": "stat", "stop": {"within": "s"}})"));
    check_rejections({{plan,
                       {{"/phases/3/process", "separate"}, {"/phases/3/stop", json::object()}},
                       "names \"s\", which runs in",
                       {}}});
}

TEST_CASE("read_source_is_data_of_or_nearest_same_suffix_write") {
    const char* const not_exact = "cannot be exact: phase \"a\" writes with random_replace";
    const json two = with_phases(R"([{"id": "a", "op": "write", "access": {"order": "random_replace"}},
                                     {"id": "b", "op": "write", "open": "overwrite"},
                                     {"id": "r", "op": "read", "verify": "on_read"}])");
    check_rejections({{two, {{"/phases/2/data_of", "a"}}, not_exact, {{"/phases/2/data_of", "b"}}},
                      {two, {{"/phases/1/op", "read"}}, not_exact, {{"/phases/1/op", "rewrite"}}},
                      {two, {{"/phases/2/data_of", "r"}}, "but no earlier phase of that name writes", {}}});
    json with_paths = two;
    with_paths["target"]["use_existing"] = true;
    with_paths["data"]["files"] = {{"mapping", "shared"}, {"paths", {"/tmp/a"}}};
    with_paths["phases"][0]["suffix"] = ".x";
    with_paths["phases"].erase(1);
    check_rejections({{with_paths, {{"/phases/1/suffix", ".x"}}, not_exact, {{"/phases/1/suffix", ".y"}}}});
    const json both =
        with_phases(R"([{"id": "a", "op": "write", "verify": "none", "access": {"order": "random_replace"}},
                                      {"id": "r", "op": "read", "verify": "both"}])");
    check_rejections({{both, {}, not_exact, {{"/phases/1/verify", "readback"}}},
                      {both, {{"/phases/1/verify", "on_read"}}, not_exact, {{"/phases/1/op", "rewrite"}}},
                      {both,
                       {{"/phases/0/verify", "both"}, {"/phases/1/verify", "none"}},
                       "readback cannot be exact",
                       {{"/phases/0/verify", "on_read"}, {"/phases/1/verify", "none"}}}});
}

TEST_CASE("replaced_files_belong_to_the_phase_or_are_all_files") {
    json plan = many_plan();
    plan["phases"] = json::parse(R"([{"id": "a", "op": "write"}, {"id": "b", "op": "write"},
                                     {"id": "r", "op": "read", "data_of": "a"}])");
    const char* const anew = "makes the files anew before";
    check_rejections(
        {{plan, {{"/phases/2/files", {2, 3}}}, anew, {{"/phases/1/files", {0, 1}}, {"/phases/2/files", {2, 3}}}},
         {plan, {{"/phases/1/files", {0}}}, anew, {{"/phases/1/open", "overwrite"}}},
         {plan, {{"/phases/1/open", "exclusive"}}, anew, {{"/phases/2/data_of", "b"}}},
         {plan, {}, anew, {{"/phases/2/op", "rewrite"}}}});  // what writes finds something in any case
}

TEST_CASE("phases_that_need_written_data") {
    for (const char* op : {"read", "reread", "read_only", "stat", "remove", "rewrite"}) {
        CAPTURE(op);
        json plan = data_plan();
        plan["phases"] = {{{"id", "x"}, {"op", op}}};
        CHECK(error_of(plan, {}) ==
              std::string("plan: phases[0].op is \"") + op +
                  "\", but no earlier phase writes the data (and target.use_existing is not set)");
        CHECK(error_of(plan, {{"/target/use_existing", true}}) == "");
        CHECK(error_of(plan, {{"/data/backend", "null"}}) == "");
    }
}

TEST_CASE("streams_are_one_write_and_one_read") {
    json three = duplex_plan();
    three["phases"][1]["streams"].push_back(json::parse(R"({"id": "more", "op": "read", "file": 2})"));
    json single_stream = duplex_plan();
    single_stream["phases"][1]["streams"].erase(0);
    const json none = with_phases(R"([{"id": "w", "op": "write"}, {"id": "d", "op": "duplex"}])");
    for (const json& plan : {three, single_stream, none}) {
        CHECK(error_of(plan, {}) == "plan: phases[1].streams must be two: one that writes and one that reads");
    }
    check_rejections(
        {{duplex_plan(),
          {{"/phases/1/streams/0/tasks", "first_half"}},
          "must both run on the same tasks",
          {{"/phases/1/streams/0/tasks", "second_half"}, {"/phases/1/streams/1/tasks", "first_half"}}},
         {duplex_plan(), {{"/data/files", {{"mapping", "per_task"}}}}, "need files.mapping = \"many\"", {}},
         {duplex_plan(), {{"/phases/1/streams/0/file", -1}}, "file is -1", {{"/phases/1/streams/0/file", 2}}}});
}

TEST_CASE("file_direct_io_and_pause_rules_with_allowed_cases") {
    json existing = data_plan();
    existing["target"]["use_existing"] = true;
    existing["data"]["files"] = {{"mapping", "per_task"}, {"paths", {"/tmp/a"}}};
    check_rejections(
        {{existing,
          {{"/data/files/across", {"/b"}}},
          "needs a directory that the run makes itself: leave out paths",
          {{"/data/files/directories", "per_task"}}},
         {existing, {}, "", {{"/data/files/paths", {"/tmp/a", "/tmp/b"}}}},
         {data_plan(),
          {{"/data/io/direct", true}, {"/data/access", {{"transfer", 512}, {"order", "stride"}, {"stride", 1025}}}},
          "access.stride is 1025 B, but direct I/O needs a multiple of 512 B",
          {{"/data/io/direct", true}, {"/data/access", {{"transfer", 512}, {"order", "stride"}, {"stride", 1024}}}}},
         {data_plan(), {{"/data/io/direct", true}, {"/data/access/offset", 256}}, "data.access.offset is 256 B", {}},
         {data_plan(), {}, "", {{"/data/access/offset", 256}}},
         {data_plan(),
          {{"/data/backend", "io_uring"}, {"/data/io/queue_depth", 2}, {"/data/io/pause", "1ns"}},
          "io.pause needs queue_depth = 1",
          {{"/data/backend", "io_uring"}, {"/data/io/pause", "1ns"}}},
         {data_plan(),
          {{"/data/io/sync", "sync"}, {"/data/backend", "mmap"}},
          "io.sync does not go with backend \"mmap\"",
          {}},
         {data_plan(), {}, "", {{"/data/io/sync", "dsync"}}},
         {data_plan(), {{"/data/verify", "on_read"}, {"/data/backend", "null"}}, "backend \"null\" keeps no data", {}},
         {data_plan(), {{"/data/backend", "tape"}}, "is \"tape\", but there are only posix, ", {}},
         {data_plan(),
          {{"/data/files", {{"mapping", "per_group"}, {"group_size", 2}}}, {"/phases/1/op", "stat"}},
          "needs files of one task each",
          {{"/data/files", {{"mapping", "per_group"}, {"group_size", 2}}}, {"/phases/1/op", "remove"}}},
         {many_plan(), {{"/phases/1/barrier", "intra"}}, "opened one after the other", {{"/phases/1/op", "stat"}}},
         {data_plan(), {}, "", {{"/phases/1/barrier", "intra"}}},
         {data_plan(),
          {{"/data/backend", "paced"}, {"/phases/0/stop/time", "1s"}},
          "phases[0].stop needs time to pass, but data.paced has neither rate nor latency",
          {{"/data/backend", "paced"}, {"/phases/0/stop/time", "1s"}, {"/data/paced/rate", 5}}},
         {data_plan(), {}, "", {{"/data/backend", "paced"}}},
         {data_plan(),
          {},
          "",
          {{"/data/backend", "paced"}, {"/phases/0/stop/time", "1s"}, {"/data/paced/virtual_clock", false}}}});
}

TEST_CASE("volume_below_inherited_block_is_rejected") {
    check_rejections(
        {{data_plan(),
          {{"/phases/1/access", {{"volume", 4096}}}},
          "phases[1].access.volume is 4096 B, but blocks are moved whole, and data.access.block is 1048576 B",
          {{"/phases/1/access", {{"volume", 4096}, {"block", 8192}}}}},
         {data_plan(),
          {{"/phases/1/access", {{"volume", {{"bytes", 4096}}}}}},
          "blocks are moved whole",
          {{"/phases/1/access", {{"volume", {{"bytes", 4096}, {"per", "total"}}}}}}},
         {data_plan(), {}, "", {{"/phases/1/access", {{"volume", {{"of", "node_memory"}, {"x", 0.1}}}}}}},
         {data_plan(), {}, "", {{"/data/access/volume", 4096}}}});  // one block then, for all phases alike
    CHECK(error_of(data_plan(), {{"/phases/1/access", {{"volume", 0}}}}) ==
          "plan: phases[1].access.volume must be more than zero");
}

TEST_CASE("error_names_phase_or_merged_member") {
    CHECK(error_of(data_plan(), {{"/phases/1/access", 3}}) == "plan: phases[1].access is 3, but must be an object");
    CHECK(error_of(data_plan(), {{"/phases/1/io", {{"queue_depth", 2}}}})
              .rfind("plan: phases[1].io.queue_depth is 2", 0) == 0);
    CHECK(error_of(data_plan(), {{"/data/io", {{"queue_depth", 2}}}}).rfind("plan: data.io.queue_depth is 2", 0) == 0);
    CHECK(error_of(data_plan(), {{"/phases/1/backend", 3}}) ==
          "plan: phases[1] over data.backend is 3, but must be text");
    CHECK(error_of(data_plan(), {{"/phases/1/verify", "x"}}).rfind("plan: phases[1] over data.verify is \"x\"", 0) ==
          0);
    CHECK(error_of(data_plan(), {{"/phases/1/suffix", 3}}).rfind("plan: phases[1] over data.files.suffix is 3", 0) ==
          0);
    CHECK(error_of(tree_plan(), {{"/phases/1/meta", {{"tree", {{"depth", -1}}}}}})
              .rfind("plan: phases[1].meta over meta.tree.depth is -1", 0) == 0);
    CHECK(error_of(tree_plan(), {{"/phases/1/verify", "x"}}).rfind("plan: phases[1].meta over meta.verify is", 0) == 0);
    CHECK(error_of(tree_plan(), {{"/meta/paced", {{"latency", -1}}}}).rfind("plan: meta.paced.latency is -1", 0) == 0);
    CHECK(error_of(tree_plan(), {{"/meta", 3}}) == "plan: meta is 3, but must be an object");
    CHECK(error_of(data_plan(), {{"/data", 3}}) == "plan: data is 3, but must be an object");
    CHECK(error_of(tree_plan(), {{"/phases/0/op", 3}}).find("op is 3, but must be one of") != std::string::npos);
}

TEST_CASE("tree_rules_with_allowed_cases") {
    json looks = tree_plan();
    looks["phases"].erase(1);
    const json mknod = {{"create", "mknod"}, {"write", 1}, {"fsync", true}};
    check_rejections(
        {{tree_plan(),
          {{"/meta/file", {{"create", "mknod"}, {"fsync", true}}}},
          "nothing to fsync",
          {{"/meta/file/fsync", true}}},
         {looks, {}, "", {{"/meta/file", mknod}}},  // nobody creates any
         {tree_plan(),
          {{"/phases/2/op", "read"}, {"/meta/objects", "directories"}},
          "only files are opened and read",
          {}},
         {tree_plan(),
          {{"/phases/2/op", "remove"},
           {"/meta/select/order", "zipf"},
           {"/phases/1/meta", {{"select", {{"order", "creation"}}}}}},
          "phases[2].meta.select.order must be creation or permute",
          {{"/phases/2/op", "remove"}, {"/meta/select/order", "permute"}}},
         {tree_plan(), {}, "", {{"/phases/2/meta", {{"select", {{"order", "zipf"}}}}}}},
         {tree_plan(),
          {{"/phases/2/op", "rename"},
           {"/meta/lookup/paths", "full"},
           {"/phases/2/meta", {{"window", {{"count", 1}}}}}},
          "goes with select.order",
          {{"/meta/lookup/paths", "full"}, {"/phases/2/meta", {{"window", {{"count", 1}}}}}}},
         {tree_plan(),
          {{"/meta/lookup/paths", "full"}, {"/phases/1/meta", {{"window", {{"count", 1}}}, {"file", {{"write", 1}}}}}},
          "needs a payload.kind that tells itself",
          {{"/meta/lookup/paths", "full"}, {"/phases/1/meta", {{"window", {{"count", 1}}}}}}},
         {tree_plan(),
          {{"/meta/lookup/paths", "full"}, {"/phases/1/meta", {{"window", {{"count", 1}}}, {"file", {{"read", 1}}}}}},
          "needs a payload.kind that tells itself",
          {}},
         {tree_plan(),
          {{"/phases/1/streams", json::parse(R"([{"id": "a", "op": "write"}])")}},
          "so it has no streams",
          {}},
         {tree_plan(), {{"/meta/backend", "mmap"}}, "\"mmap\" has no operations on names: use posix", {}},
         {tree_plan(),
          {{"/meta/backend", "null"}, {"/phases/2/op", "walk"}},
          "keeps nothing: use posix",
          {{"/meta/backend", "null"}}},
         {tree_plan(),
          {{"/phases/0/shift/by", "tasks"}},
          "a task always makes its own items",
          {{"/phases/2/shift/by", "tasks"}}},
         {tree_plan(),
          {{"/phases/2/op", "rename"}, {"/phases/2/shift/by", "random"}},
          "lets two tasks change the same item",
          {{"/phases/2/op", "rename"}, {"/phases/2/shift/by", "tasks"}}},
         {tree_plan(), {}, "", {{"/phases/2/op", "rmtree"}, {"/phases/2/shift/by", "random"}}},
         {tree_plan(),
          {{"/meta/verify", "on_read"}, {"/meta/file", {{"write", 9}}}, {"/phases/2/op", "read"}},
          "verify needs meta.file.read from 1 B to the 9 B that file.write puts into each file",
          {{"/meta/verify", "on_read"}, {"/meta/file", {{"write", 9}, {"read", 1}}}, {"/phases/2/op", "read"}}},
         {tree_plan(), {}, "", {{"/meta/verify", "on_read"}, {"/meta/file/write", 9}}},  // who never reads back
         {cycle_plan(),
          {{"/meta/objects", "directories"}},
          "\"cycle\" needs meta.window",
          {{"/meta/verify", "on_read"}}},
         {tree_plan(),
          {{"/phases/2/op", "cycle"}, {"/meta/tree/scope", "per_task"}},
          "= \"cycle\" needs meta.window, tree.scope = \"per_task\", tree.depth = 0 and files",
          {{"/meta/tree/scope", "per_task"}}},
         {tree_plan(), {{"/phases/2/stop", {{"items", 1}}}, {"/phases/2/op", "readdir"}}, "works on directories", {}}});
    const char* const repeats =
        "must not repeat op = \"walk\": use stop.stonewall, or stop.time with stat, open_close, "
        "read or readdir";
    check_rejections(
        {{tree_plan(), {{"/phases/2/op", "walk"}, {"/phases/2/stop/time", "1s"}}, repeats, {{"/phases/2/op", "walk"}}},
         {tree_plan(), {}, "", {{"/phases/2/op", "readdir"}, {"/phases/2/stop/time", "1s"}}},
         {tree_plan(), {}, "", {{"/phases/2/op", "open_close"}, {"/phases/2/stop/min_time", "1s"}}}});
}

TEST_CASE("rules_use_backend_traits_also_of_new_backends") {
    sonde::plan::Capabilities capabilities;
    capabilities.backends = {{"posix", {.supports_direct = true, .supports_trees = true}},
                             {"mpi_plain", {.needs_mpi = true}},
                             {"mpi_queue", {.supports_queue = true, .supports_collective = true, .needs_mpi = true}},
                             {"nothing", {.stores_data = false, .supports_direct = true}}};
    json plan = data_plan();
    plan["data"]["files"] = {{"mapping", "shared"}};
    plan["data"]["io"] = {{"collective", true}};
    plan["data"]["backend"] = "mpi_plain";
    CHECK(error_of_phases(capabilities, plan) == "plan: data.io.collective needs backend mpi_queue, not \"mpi_plain\"");
    plan["data"]["backend"] = "mpi_queue";
    CHECK(error_of_phases(capabilities, plan) == "");
    plan["data"]["io"]["queue_depth"] = 2;
    CHECK(error_of_phases(capabilities, plan) == "plan: data.io.collective needs queue_depth = 1");
    plan["data"]["backend"] = "tape";
    plan["data"]["io"] = json::object();
    CHECK(error_of_phases(capabilities, plan) ==
          "plan: data.backend is \"tape\", but there are only posix, mpi_plain, mpi_queue, nothing");
    plan["data"]["backend"] = "mpi_plain";
    plan["data"]["io"] = {{"direct", true}};
    CHECK(error_of_phases(capabilities, plan) ==
          "plan: data.io.direct does not go with backend \"mpi_plain\": use posix");
    CHECK(capabilities.list_backends_with(&sonde::plan::BackendTraits::needs_mpi) == "mpi_plain or mpi_queue");
    CHECK(capabilities.find_treatment("sync") == nullptr);
    const sonde::plan::BackendTraits unknown = capabilities.find_traits("tape");
    CHECK((unknown.stores_data && unknown.needs_files));
    CHECK_FALSE((unknown.supports_queue || unknown.supports_direct || unknown.supports_sync || unknown.supports_trees ||
                 unknown.supports_collective || unknown.needs_mpi || unknown.supports_virtual_time));
    capabilities.treatments = {{"wish", nullptr}};
    plan["data"]["io"] = json::object();
    plan["phases"][1]["before"] = json::parse(R"([{"kind": "wish"}])");
    CHECK(error_of_phases(capabilities, plan) == "");
}
