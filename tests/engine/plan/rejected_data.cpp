// SPDX-License-Identifier: Apache-2.0
// Rules of plans about data: where accesses go, which files there are, how they are opened.
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

const json stride = {{"transfer", 512}, {"block", 1024}, {"order", "stride"}, {"stride", 512}};

json with(json table, const char* name, const json& value) {
    table[name] = value;
    return table;
}

/// Two entries of access.sizes.
json sizes_of(std::uint64_t first, double first_percent, std::uint64_t second, double second_percent) {
    return json::array(
        {{{"size", first}, {"percent", first_percent}}, {{"size", second}, {"percent", second_percent}}});
}

}  // namespace

TEST_CASE("base_plans_are_valid") {
    for (const json& plan : {data_plan(), many_plan(), duplex_plan(), tree_plan(), cycle_plan()}) {
        CHECK(error_of(plan, {}) == "");
    }
}

TEST_CASE("access_rules") {
    check_rejections({
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
        {data_plan(),
         {{"/data/access/distribution", {{"kind", "zipf"}}}},
         "distribution is only used with order",
         {{"/data/access/distribution", {{"kind", "zipf"}}}, {"/data/access/order", "random_replace"}}},
        {data_plan(),
         {{"/data/access/distribution", {{"kind", "pareto"}, {"theta", 1.2}}},
          {"/data/access/order", "random_replace"}},
         "distribution.theta is only used with kind = \"zipf\"",
         {{"/data/access/distribution", {{"kind", "pareto"}, {"share", 0.1}}},
          {"/data/access/order", "random_replace"}}},
        {data_plan(),
         {{"/data/access/distribution", {{"kind", "zipf"}, {"deviation", 0.1}}},
          {"/data/access/order", "random_replace"}},
         "distribution.deviation is only used with kind = \"normal\"",
         {{"/data/access/distribution", {{"kind", "normal"}, {"deviation", 0.1}}},
          {"/data/access/order", "random_replace"}}},
        {data_plan(),
         {{"/data/access/distribution", {{"kind", "zipf"}, {"theta", 0.0}}}, {"/data/access/order", "random_replace"}},
         "theta",
         {{"/data/access/distribution", {{"kind", "zipf"}, {"theta", 0.01}}},
          {"/data/access/order", "random_replace"}}},
        {data_plan(), {{"/data/access/sizes", sizes_of(512, 50, 4096, 50)}}, "sizes is only used with order", {}},
        {data_plan(),
         {{"/data/access/sizes", sizes_of(512, 50, 4096, 49)}, {"/data/access/order", "random_replace"}},
         "do not add up to 100",
         {{"/data/access/sizes", sizes_of(512, 50, 4096, 50)}, {"/data/access/order", "random_replace"}}},
        {data_plan(),
         {{"/data/access/sizes", sizes_of(512, 50, 8192, 50)}, {"/data/access/order", "random_replace"}},
         "has 8192 B as its largest size, which transfer must be too (it is 4096 B)",
         {}},
        {data_plan(),
         {{"/data/access/sizes", sizes_of(0, 50, 4096, 50)}, {"/data/access/order", "random_replace"}},
         "holds a size of 0 B",
         {}},
        {data_plan(),
         {{"/data/access/sizes", sizes_of(513, 50, 4096, 50)},
          {"/data/access/order", "random_replace"},
          {"/data/io/direct", true}},
         "holds 513 B, but direct I/O needs multiples of 512 B",
         {{"/data/access/sizes", sizes_of(512, 50, 4096, 50)},
          {"/data/access/order", "random_replace"},
          {"/data/io/direct", true}}},
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

TEST_CASE("block_limit_for_each_mapping") {
    const auto at_most = [](const json& files, const json& tasks, std::uint64_t segments) {
        json plan = data_plan();
        plan["data"] = {{"files", files},
                        {"access", {{"transfer", 1}, {"block", 1ULL << 40U}, {"segments", segments}}}};
        plan["tasks"] = tasks;
        return error_of(plan, {}).empty();
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

TEST_CASE("file_backend_and_open_rules") {
    const json mpi = "mpiio";
    check_rejections({
        {data_plan(), {{"/data/files", {{"group_size", 2}}}}, "group_size is only used with", {}},
        {data_plan(),
         {{"/data/files", {{"mapping", "shared"}, {"directories", "per_task"}}}},
         "does not go with one shared file",
         {{"/data/files", {{"mapping", "per_task"}, {"directories", "per_task"}}}}},
        {data_plan(), {{"/data/io/view", true}}, "io.view needs backend mpiio", {}},
        {data_plan(),
         {{"/data/backend", "io_uring"}, {"/data/io/iopoll", true}},
         "io.iopoll needs io.direct = true",
         {{"/data/backend", "io_uring"}, {"/data/io/sqpoll", true}}},
        {data_plan(),
         {{"/data/backend", "io_uring"}, {"/data/io", {{"iopoll", true}, {"direct", true}, {"fsync", "per_op"}}}},
         "io.iopoll does not go with io.fsync = \"per_op\"",
         {{"/data/backend", "io_uring"}, {"/data/io", {{"iopoll", true}, {"direct", true}, {"fsync", "end"}}}}},
        {data_plan(),
         {{"/data/io/hints", {{"a", "b"}}}},
         "io.hints needs backend mpiio or hdf5 or pnetcdf",
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
         {{"/data/backend", "io_uring"}, {"/data/io/queue_depth", 2}, {"/data/io/iops_limit", 10}},
         "io.iops_limit needs queue_depth = 1",
         {{"/data/io/iops_limit", 10}}},
        {data_plan(),
         {{"/data/io/pause", "1ms"}, {"/data/io/rate_limit", "1MB/s"}},
         "io.rate_limit and io.pause exclude each other",
         {{"/data/io/rate_limit", "1MB/s"}}},
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

TEST_CASE("rules_of_files_in_place") {
    const auto in_place = [](const json& files) {
        json plan = data_plan();
        plan["target"]["use_existing"] = true;
        plan["data"]["files"] = files;
        return plan;
    };
    const json single_path = {{"mapping", "shared"}, {"paths", {"/tmp/a"}}};
    const json two = {{"mapping", "per_task"}, {"paths", {"/tmp/a", "/tmp/b"}}};
    check_rejections({
        {in_place(single_path), {{"/data/files/mapping", "per_node"}}, "paths goes with mapping", {}},
        {in_place(single_path), {{"/data/files/mapping", "many"}}, "paths goes with mapping", {}},
        {in_place(two), {{"/data/files/mapping", "shared"}}, "with more than one path needs", {}},
        {in_place(two), {{"/data/files/directories", "per_task"}}, "with more than one path needs", {}},
        {in_place(single_path), {{"/data/files/directories", "per_node"}}, "does not go with paths", {}},
        {in_place(single_path), {{"/target/use_existing", false}}, "must have use_existing and no directory", {}},
        {in_place(single_path), {{"/target/directory", "d"}}, "must have use_existing and no directory", {}},
        {in_place(single_path), {{"/phases/1/process", "separate"}}, "no run directory for a manifest", {}},
        {in_place(single_path), {}, "", {{"/phases/1/suffix", ".x"}, {"/phases/0/suffix", ".x"}}},
    });
}

TEST_CASE("rules_of_files_across_directories") {
    json across = data_plan();
    across["data"]["files"] = {{"mapping", "per_task"}, {"across", {"/a", "/b"}}};
    const json several_files = {{"mapping", "many"}, {"count", 2}, {"across", {"/a"}}};
    const json group = {{"mapping", "per_group"}, {"group_size", 2}, {"across", {"/a"}}};
    check_rejections({
        {across, {{"/data/files/mapping", "shared"}}, "deals out the files of tasks", {{"/data/files", several_files}}},
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
