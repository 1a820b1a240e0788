// SPDX-License-Identifier: Apache-2.0
// State of the files after earlier phases: written length of each file, version of each block.
#include "files/dataset.hpp"

#include <doctest/doctest.h>

using sonde::files::ByteRange;
using sonde::files::Dataset;
using sonde::files::DataState;
using sonde::files::FileMap;
using sonde::files::find_writer;
using sonde::files::find_written_range;
using sonde::files::is_same_geometry;
using sonde::files::operations_in_file;
using sonde::files::TaskMap;
using sonde::plan::Access;
using sonde::plan::AccessOrder;
using sonde::plan::Files;
using sonde::plan::Mapping;
using sonde::plan::PermutationScope;

namespace {

const TaskMap two_tasks{2, {0}};

Access blocks(std::uint64_t transfer, std::uint64_t slots) {
    Access access;
    access.transfer = transfer;
    access.block = transfer * slots;
    return access;
}

/// A write of two segments of four transfers by two tasks.
DataState state_of(const char* phase, std::uint64_t generation, std::vector<std::uint64_t> operations) {
    DataState state;
    state.phase = phase;
    state.generation = generation;
    state.access = blocks(100, 4);
    state.segments = 2;
    state.operations_by_task = std::move(operations);
    return state;
}

Files files_of(Mapping mapping, int count = 1) {
    Files files;
    files.mapping = mapping;
    files.count = count;
    return files;
}

/// End of what task `task` has certainly written.
std::uint64_t end_of(const DataState& state, const FileMap& map, int task) {
    const std::optional<ByteRange> range = find_written_range(state, map, task, 0, 2);
    return range ? range->to : ~0ULL;
}

}  // namespace

TEST_CASE("geometry is the same when addresses and order are") {
    const Access base = blocks(100, 4);
    CHECK(is_same_geometry(base, 2, base, 2));
    CHECK_FALSE(is_same_geometry(base, 2, base, 3));
    CHECK_FALSE(is_same_geometry(base, 2, blocks(200, 2), 2));
    Access other = base;
    other.offset = 100;
    CHECK_FALSE(is_same_geometry(base, 2, other, 2));
    other = base;
    other.order = AccessOrder::reverse;
    CHECK_FALSE(is_same_geometry(base, 2, other, 2));
    other = base;
    other.seed = 9;
    other.scope = PermutationScope::file;
    CHECK(is_same_geometry(base, 2, other, 2));  // seed and scope mean nothing in order
    other.order = AccessOrder::random_permute;
    Access random = base;
    random.order = AccessOrder::random_permute;
    random.seed = 9;
    CHECK_FALSE(is_same_geometry(random, 2, other, 2));
    random.scope = PermutationScope::file;
    CHECK(is_same_geometry(random, 2, other, 2));
}

TEST_CASE("operations of a task are dealt to its files in their order") {
    DataState state = state_of("w", 1, {20, 8});
    CHECK(operations_in_file(state, 0, 0, 8) == 8);
    CHECK(operations_in_file(state, 0, 1, 8) == 8);
    CHECK(operations_in_file(state, 0, 2, 8) == 4);
    CHECK(operations_in_file(state, 0, 3, 8) == 0);
    CHECK(operations_in_file(state, 1, 1, 8) == 0);
    state.file_indices = {5, 2};
    CHECK(operations_in_file(state, 0, 5, 8) == 8);
    CHECK(operations_in_file(state, 0, 2, 8) == 8);
    CHECK(operations_in_file(state, 0, 0, 8) == 0);  // not one of its files
}

TEST_CASE("extent of a file depends on its completeness") {
    const FileMap own("/t", files_of(Mapping::per_task), two_tasks);
    CHECK(end_of(state_of("w", 1, {8, 3}), own, 0) == 800);
    CHECK(end_of(state_of("w", 1, {8, 3}), own, 1) == 300);
    const FileMap shared("/t", files_of(Mapping::shared), two_tasks);
    CHECK(end_of(state_of("w", 1, {8, 8}), shared, 0) == 1600);
    // Task 1 has done its first block only: [0, 800) is complete.
    CHECK(end_of(state_of("w", 1, {8, 5}), shared, 0) == 800);
    CHECK(end_of(state_of("w", 1, {8, 3}), shared, 0) == 0);
}

TEST_CASE("certainly written range begins at offset without holes") {
    const FileMap own("/t", files_of(Mapping::per_task), two_tasks);
    DataState state = state_of("w", 1, {8, 8});
    state.access.offset = 50;
    const auto range = find_written_range(state, own, 0, 0, 2);
    REQUIRE(range);
    CHECK(range->from == 50);
    CHECK(range->to == 850);
    state.access.offset = 0;
    state.access.gap = 50;
    CHECK_FALSE(find_written_range(state, own, 0, 0, 2));
    state.access.gap = 0;
    state.access.order = AccessOrder::stride;
    state.access.stride = 150;
    CHECK_FALSE(find_written_range(state, own, 0, 0, 2));
    state.access.stride = 100;
    CHECK(end_of(state, own, 0) == 800);  // a dense stride leaves none
    state.access.order = AccessOrder::random_replace;
    CHECK_FALSE(find_written_range(state, own, 0, 0, 2));
    state.access.order = AccessOrder::random_permute;
    CHECK(end_of(state, own, 0) == 800);
    state.operations_by_task = {7, 8};
    CHECK_FALSE(find_written_range(state, own, 0, 0, 2));  // the one that is missing may be anywhere
    DataState one_block = state_of("w", 1, {4, 4});
    one_block.segments = 1;
    one_block.access.gap = 50;
    CHECK(end_of(one_block, own, 0) == 400);  // the gap is behind it
}

TEST_CASE("data of older phases counts until files are created anew") {
    const FileMap own("/t", files_of(Mapping::per_task), two_tasks);
    DataState write = state_of("write", 1, {8, 8});
    write.replaces_files = true;
    DataState random = state_of("rewrite", 2, {8, 8});
    random.access.order = AccessOrder::random_replace;
    Dataset data;
    data.add_state(write);
    data.add_state(random);
    const auto ranges = data.list_written_ranges(data.states().back(), own, 0, 0, 2);
    REQUIRE(ranges.size() == 1);
    CHECK(ranges[0].to == 800);
    DataState again = state_of("again", 3, {2, 8});
    again.replaces_files = true;
    data.add_state(again);
    const auto remaining = data.list_written_ranges(data.states().back(), own, 0, 0, 2);
    REQUIRE(remaining.size() == 1);
    CHECK(remaining[0].to == 200);
}

TEST_CASE("writer of a byte is the task of its block") {
    const FileMap own("/t", files_of(Mapping::per_task), two_tasks);
    CHECK(find_writer(state_of("w", 1, {8, 8}), own, 1, 5000, 2) == 1);
    const FileMap shared("/t", files_of(Mapping::shared), two_tasks);
    DataState state = state_of("w", 1, {8, 8});
    CHECK(find_writer(state, shared, 0, 0, 2) == 0);
    CHECK(find_writer(state, shared, 0, 399, 2) == 0);
    CHECK(find_writer(state, shared, 0, 400, 2) == 1);
    CHECK(find_writer(state, shared, 1, 800, 2) == 0);
    state.access.gap = 100;
    state.access.offset = 10;
    CHECK(find_writer(state, shared, 1, 510, 2) == 1);
    CHECK(find_writer(state, shared, 1, 1010, 2) == 0);
    CHECK(find_writer(state, shared, 1, 9, 2) == -1);
    state.access.order = AccessOrder::random_permute;
    CHECK(find_writer(state, shared, 1, 510, 2) == 1);
    state.access.scope = PermutationScope::file;
    CHECK(find_writer(state, shared, 1, 510, 2) == -1);
    state.access.order = AccessOrder::stride;
    state.access.stride = 150;
    CHECK(find_writer(state, shared, 0, 10 + 3 * 150, 2) == 1);
}

TEST_CASE("block not reached by a later phase keeps its version") {
    Dataset data;
    data.add_state(state_of("write", 1, {8, 8}));
    data.add_state(state_of("rewrite", 2, {3, 8}));
    const auto first = data.list_generations(data.states().back(), blocks(100, 4), 2, 0, 0);
    REQUIRE(first.size() == 2);
    CHECK(first[0].generation == 2);
    CHECK(first[0].operation_count == 3);
    CHECK(first[1].generation == 1);
    CHECK(first[1].operation_count == 8);
    const auto second = data.list_generations(data.states().back(), blocks(100, 4), 2, 1, 0);
    REQUIRE(second.size() == 1);
    CHECK(second[0].generation == 2);
}

TEST_CASE("other geometry finds the right version of each file") {
    // Four files a task; only files 0 and 1 were rewritten. A reader of other transfers must expect generation 1 in
    // files 2 and 3, whatever its own number of operations in a file.
    Dataset data;
    data.add_state(state_of("write", 1, {32, 32}));
    DataState rewrite = state_of("rewrite", 2, {16, 16});
    rewrite.file_indices = {0, 1};
    data.add_state(rewrite);
    for (int k = 0; k < 4; ++k) {
        const auto list = data.list_generations(data.states().back(), blocks(50, 4), 4, 1, k);
        CAPTURE(k);
        REQUIRE(list.size() == 1);
        CHECK(list[0].generation == (k < 2 ? 2 : 1));
        CHECK(list[0].operation_count >= 16);
    }
}

TEST_CASE("versions are unknown after random or other writes") {
    const auto verifiable = [](const DataState& later) {
        Dataset data;
        data.add_state(state_of("write", 1, {8, 8}));
        data.add_state(later);
        return data.is_verifiable(data.states().front(), blocks(100, 4), 2, 0);
    };
    CHECK(verifiable(state_of("rewrite", 2, {8, 8})));
    DataState mixed = state_of("mixed", 2, {8, 8});
    mixed.is_order_known = false;
    CHECK_FALSE(verifiable(mixed));
    DataState other = state_of("rewrite", 2, {8, 8});
    other.access = blocks(50, 8);
    CHECK_FALSE(verifiable(other));
}

TEST_CASE("read in other geometry needs one version per file") {
    Dataset data;
    data.add_state(state_of("write", 1, {8, 8}));
    const Access other = blocks(50, 8);
    CHECK(data.is_verifiable(data.states().front(), other, 2, 0));
    data.add_state(state_of("rewrite", 2, {8, 8}));
    CHECK(data.is_verifiable(data.states().front(), other, 2, 0));
    data.add_state(state_of("part", 3, {8, 5}));
    CHECK_FALSE(data.is_verifiable(data.states().front(), other, 2, 0));
    CHECK(data.is_verifiable(data.states().front(), blocks(100, 4), 2, 0));  // operation by operation it is known
    CHECK(data.is_verifiable(data.states().back(), other, 2, 0));            // reads the part that was written
}

TEST_CASE("the source of a read is the phase it names, or the newest") {
    Dataset data;
    sonde::plan::Phase phase;
    CHECK(data.find_source(phase, 0) == nullptr);
    data.add_state(state_of("a", 1, {8, 8}));
    data.add_state(state_of("b", 2, {8, 8}));
    CHECK(data.find_source(phase, 0)->phase == "b");
    phase.data_of = "a";
    CHECK(data.find_source(phase, 0)->phase == "a");
    phase.data_of = "c";
    CHECK(data.find_source(phase, 0) == nullptr);
}

TEST_CASE("recreated files leave no earlier versions") {
    Dataset data;
    const auto state_with = [](std::uint64_t generation, const char* suffix, std::vector<int> files) {
        DataState state = state_of("write", generation, {8, 8});
        state.replaces_files = true;
        state.file_name_suffix = suffix;
        state.file_indices = std::move(files);
        return state;
    };
    for (std::uint64_t i = 1; i <= 1000; ++i) {
        data.add_state(state_with(i, "", {}));
        data.add_state(state_of("rewrite", i, {8, 8}));
    }
    CHECK(data.states().size() == 2);
    data.add_state(state_with(2000, ".1", {}));
    CHECK(data.states().size() == 3);  // other files
    data.add_state(state_with(2001, "", {1, 3}));
    CHECK(data.states().size() == 4);  // all others of the first state are still there
    data.add_state(state_with(2002, "", {3, 1, 4}));
    CHECK(data.states().size() == 4);
    data.forget("");
    REQUIRE(data.states().size() == 1);
    CHECK(data.states()[0].file_name_suffix == ".1");
}

TEST_CASE("a dataset survives the manifest") {
    Dataset data;
    DataState state = state_of("a", 3, {8, 5});
    state.access.order = AccessOrder::random_permute;
    state.access.scope = PermutationScope::file;
    state.access.gap = 7;
    state.access.offset = 9;
    state.access.seed = 11;
    state.file_name_suffix = ".1";
    state.file_indices = {1, 3};
    state.is_order_known = false;
    state.replaces_files = true;
    data.add_state(state);
    const Dataset restored_data = Dataset::from_json(nlohmann::json::parse(data.to_json().dump()));
    REQUIRE(restored_data.states().size() == 1);
    const DataState& restored = restored_data.states()[0];
    CHECK(restored.phase == "a");
    CHECK(restored.generation == 3);
    CHECK(is_same_geometry(restored.access, restored.segments, state.access, 2));
    CHECK(restored.file_name_suffix == state.file_name_suffix);
    CHECK(restored.file_indices == state.file_indices);
    CHECK(restored.operations_by_task == state.operations_by_task);
    CHECK_FALSE(restored.is_order_known);
    CHECK(restored.replaces_files);
    CHECK(restored.adds_data);
}

TEST_CASE("random write with another order rule is not verified") {
    DataState half = state_of("half", 1, {8, 5});
    half.access.order = AccessOrder::random_permute;
    DataState complete = state_of("whole", 1, {8, 8});
    complete.access.order = AccessOrder::random_permute;
    for (const DataState& state : {half, complete}) {
        CAPTURE(state.phase);
        Dataset data;
        data.add_state(state);
        nlohmann::json document = data.to_json();
        const Dataset ours = Dataset::from_json(document);
        CHECK(ours.is_verifiable(ours.states().front(), state.access, 2, 0));
        document.at(0)["order_rule"] = sonde::patterns::Permutation::order_version + 1;
        const Dataset other_rule = Dataset::from_json(document);
        CHECK(other_rule.is_verifiable(other_rule.states().front(), state.access, 2, 0) == (state.phase == "whole"));
        CHECK(is_same_geometry(state.access, 2, other_rule.states().front().access, 2) == (state.phase == "whole"));
    }
}
