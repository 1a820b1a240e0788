// SPDX-License-Identifier: Apache-2.0
// Where operations go: the published formula by hand, and what holds for every order and scope.
#include "patterns/geometry.hpp"

#include <doctest/doctest.h>
#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <vector>

using sonde::patterns::FileShare;
using sonde::patterns::Geometry;
using sonde::plan::Access;
using sonde::plan::AccessOrder;
using sonde::plan::PermutationScope;

namespace {

Access access_of(std::uint64_t transfer, std::uint64_t slots, AccessOrder order = AccessOrder::sequential,
                 PermutationScope scope = PermutationScope::task) {
    Access access;
    access.transfer = transfer;
    access.block = transfer * slots;
    access.order = order;
    access.scope = scope;
    return access;
}

std::vector<std::uint64_t> offsets(const Geometry& geometry, std::uint64_t pass = 0) {
    std::vector<std::uint64_t> list;
    for (std::uint64_t i = 0; i < geometry.operation_count(); ++i) {
        list.push_back(geometry.offset_of(i, pass));
    }
    return list;
}

std::vector<std::uint64_t> sorted(std::vector<std::uint64_t> list) {
    std::sort(list.begin(), list.end());
    return list;
}

}  // namespace

TEST_CASE("a shared file in IOR's strided layout: g N B + r B + j T") {
    // N = 4, B = 8, S = 3, T = 4; rank 2 by hand.
    const Geometry geometry(access_of(4, 2), 3, {4, 2}, 0);
    CHECK(offsets(geometry) == std::vector<std::uint64_t>{16, 20, 48, 52, 80, 84});
    CHECK(geometry.end_of_file() == 96);
    CHECK(geometry.first_block_offset() == 16);
    CHECK(geometry.bytes_per_block() == 8);
    CHECK(geometry.block_distance() == 32);
}

TEST_CASE("a file per task: g B + j T") {
    const Geometry geometry(access_of(10'000, 3), 2, {1, 0}, 5);
    CHECK(offsets(geometry) == std::vector<std::uint64_t>{0, 10'000, 20'000, 30'000, 40'000, 50'000});
    CHECK(geometry.end_of_file() == 60'000);
}

TEST_CASE("offset and gap: o + g N (B + G) + p (B + G) + j T") {
    Access access = access_of(4, 2);
    access.offset = 1000;
    access.gap = 92;
    const Geometry geometry(access, 2, {3, 1}, 0);
    CHECK(offsets(geometry) == std::vector<std::uint64_t>{1100, 1104, 1400, 1404});
    CHECK(geometry.end_of_file() == 1000 + 5 * 100 + 8);  // the last block of sharer 2 has no gap after it
}

TEST_CASE("stride: one transfer every stride bytes, sharers in turn") {
    Access access = access_of(4, 2, AccessOrder::stride);
    access.stride = 100;
    access.offset = 7;
    const Geometry geometry(access, 2, {3, 2}, 0);
    CHECK(offsets(geometry) == std::vector<std::uint64_t>{207, 507, 807, 1107});
    CHECK(geometry.end_of_file() == 7 + 11 * 100 + 4);
}

TEST_CASE("reverse is sequential from behind") {
    Access access = access_of(16, 4);
    access.gap = 5;
    std::vector<std::uint64_t> forward = offsets(Geometry(access, 3, {2, 1}, 0));
    access.order = AccessOrder::reverse;
    std::reverse(forward.begin(), forward.end());
    CHECK(offsets(Geometry(access, 3, {2, 1}, 0)) == forward);
}

TEST_CASE("fill agrees with offset_of at every start and length") {
    std::mt19937_64 random(1);
    for (const AccessOrder order : {AccessOrder::sequential, AccessOrder::reverse, AccessOrder::stride,
                                    AccessOrder::random_permute, AccessOrder::random_replace}) {
        for (const PermutationScope scope : {PermutationScope::block, PermutationScope::task, PermutationScope::file}) {
            Access access = access_of(8, 5, order, scope);
            access.gap = order == AccessOrder::stride ? 0 : 3;
            access.offset = 11;
            access.stride = order == AccessOrder::stride ? 24 : 0;
            const Geometry geometry(access, 13, {3, 1}, 9);
            for (int round = 0; round < 50; ++round) {
                const std::uint64_t first = random() % geometry.operation_count();
                const std::uint64_t pass = random() % 3;
                std::vector<std::uint64_t> offsets(1 + random() % (geometry.operation_count() - first));
                geometry.fill_offsets(first, pass, offsets);
                for (std::size_t k = 0; k < offsets.size(); ++k) {
                    REQUIRE(offsets[k] == geometry.offset_of(first + k, pass));
                }
            }
        }
    }
}

TEST_CASE("permutation covers the sequential set, new in each pass") {
    for (const PermutationScope scope : {PermutationScope::block, PermutationScope::task}) {
        Access access = access_of(8, 16);
        access.gap = 4;
        const std::vector<std::uint64_t> plain = offsets(Geometry(access, 6, {3, 2}, 1));
        access.order = AccessOrder::random_permute;
        access.scope = scope;
        const Geometry geometry(access, 6, {3, 2}, 1);
        CHECK(sorted(offsets(geometry)) == plain);
        CHECK(offsets(geometry) != plain);
        CHECK(offsets(geometry, 1) != offsets(geometry));
        CHECK(sorted(offsets(geometry, 1)) == plain);
    }
}

TEST_CASE("block scope permutes each block alike, as IOR -z") {
    const Geometry geometry(access_of(4, 10, AccessOrder::random_permute, PermutationScope::block), 3, {2, 1}, 0);
    const std::vector<std::uint64_t> list = offsets(geometry);
    for (std::size_t g = 0; g < 3; ++g) {
        for (std::size_t j = 0; j < 10; ++j) {
            const std::uint64_t start = (2 * g + 1) * 40;
            CHECK(list[g * 10 + j] >= start);
            CHECK(list[g * 10 + j] < start + 40);
            CHECK(list[g * 10 + j] - start == list[j] - 40);
        }
    }
}

TEST_CASE("file scope distributes all slots without overlap") {
    const Access access = access_of(8, 5, AccessOrder::random_permute, PermutationScope::file);
    constexpr std::uint64_t sharers = 7;
    std::vector<std::uint64_t> all;
    bool foreign = false;
    for (std::uint64_t index = 0; index < sharers; ++index) {
        const std::vector<std::uint64_t> own_offsets = offsets(Geometry(access, 4, {sharers, index}, 33));
        CHECK(own_offsets.size() == 20);
        for (const std::uint64_t offset : own_offsets) {
            foreign = foreign || (offset / 40) % sharers != index;
        }
        all.insert(all.end(), own_offsets.begin(), own_offsets.end());
    }
    CHECK(foreign);  // a task really gets slots outside its own blocks
    std::vector<std::uint64_t> expected;
    for (std::uint64_t slot = 0; slot < 20 * sharers; ++slot) {
        expected.push_back(slot * 8);
    }
    CHECK(sorted(all) == expected);
}

TEST_CASE("replacement stays inside its scope and repeats slots") {
    for (const PermutationScope scope : {PermutationScope::block, PermutationScope::task, PermutationScope::file}) {
        Access access = access_of(8, 8);
        const std::vector<std::uint64_t> own_offsets = offsets(Geometry(access, 50, {2, 1}, 0));
        std::set<std::uint64_t> allowed(own_offsets.begin(), own_offsets.end());
        if (scope == PermutationScope::file) {
            const std::vector<std::uint64_t> other = offsets(Geometry(access, 50, {2, 0}, 0));
            allowed.insert(other.begin(), other.end());
        }
        access.order = AccessOrder::random_replace;
        access.scope = scope;
        const Geometry geometry(access, 50, {2, 1}, 0);
        const std::vector<std::uint64_t> sequence = offsets(geometry);
        const std::set<std::uint64_t> distinct(sequence.begin(), sequence.end());
        CHECK(std::includes(allowed.begin(), allowed.end(), distinct.begin(), distinct.end()));
        CHECK(distinct.size() < sequence.size());
        CHECK(distinct.size() > sequence.size() / 2);
        CHECK(offsets(geometry, 1) != sequence);
    }
}

TEST_CASE("seed, file and task each change the random order") {
    Access access = access_of(8, 64, AccessOrder::random_permute);
    const std::vector<std::uint64_t> base = offsets(Geometry(access, 1, {1, 0}, 0));
    CHECK(offsets(Geometry(access, 1, {1, 0}, 0)) == base);
    CHECK(offsets(Geometry(access, 1, {1, 0}, 1)) != base);
    access.seed = 2;
    CHECK(offsets(Geometry(access, 1, {1, 0}, 0)) != base);
    access.seed = 1;
    std::vector<std::uint64_t> second = offsets(Geometry(access, 1, {2, 1}, 0));
    for (std::uint64_t& offset : second) {
        offset -= 512;
    }
    CHECK(second != offsets(Geometry(access, 1, {2, 0}, 0)));
}

TEST_CASE("sharers of a file leave no hole but the gaps") {
    std::mt19937_64 random(8);
    for (int round = 0; round < 200; ++round) {
        Access access = access_of(1 + random() % 9, 1 + random() % 6);
        access.gap = random() % 4;
        access.offset = random() % 20;
        const std::uint64_t sharers = 1 + random() % 5;
        const std::uint64_t segments = 1 + random() % 5;
        std::map<std::uint64_t, int> touched;
        std::uint64_t end = 0;
        for (std::uint64_t index = 0; index < sharers; ++index) {
            const Geometry geometry(access, segments, {sharers, index}, 0);
            for (const std::uint64_t offset : offsets(geometry)) {
                for (std::uint64_t byte = 0; byte < access.transfer; ++byte) {
                    ++touched[offset + byte];
                }
            }
            end = geometry.end_of_file();
        }
        REQUIRE(touched.size() == sharers * segments * access.block);
        REQUIRE(touched.rbegin()->first + 1 == end);
        REQUIRE(touched.begin()->first == access.offset);
    }
}

TEST_CASE("draws within a limit reach all multiples of the transfer") {
    Access access = access_of(8, 4, AccessOrder::random_replace);
    access.offset = 1000;
    access.within = 80;
    const Geometry geometry(access, 100, {3, 1}, 0);
    CHECK(geometry.end_of_file() == 1080);
    const std::vector<std::uint64_t> sequence = offsets(geometry);
    const std::set<std::uint64_t> distinct(sequence.begin(), sequence.end());
    CHECK(distinct.size() == 10);
    CHECK(*distinct.begin() == 1000);
    CHECK(*distinct.rbegin() == 1072);
    CHECK(offsets(Geometry(access, 100, {3, 2}, 0)) != sequence);
}

TEST_CASE("seeded offsets equal stored reference offsets") {
    // Computed from the description in geometry.hpp and permutation.hpp by other code: T = 4 B, gap 8 B, offset 1000.
    struct ReferenceOffsets {
        AccessOrder order;
        PermutationScope scope;
        std::uint64_t segments;  ///< one of six slots, or some of three
        FileShare share;
        std::vector<std::uint64_t> offsets;
    };
    const ReferenceOffsets table[] = {
        {AccessOrder::random_permute, PermutationScope::block, 1, {1, 0}, {1012, 1016, 1020, 1004, 1008, 1000}},
        {AccessOrder::random_permute, PermutationScope::block, 1, {3, 2}, {1084, 1068, 1080, 1076, 1064, 1072}},
        {AccessOrder::random_permute, PermutationScope::block, 2, {1, 0}, {1004, 1008, 1000, 1024, 1028, 1020}},
        {AccessOrder::random_permute, PermutationScope::block, 2, {3, 2}, {1048, 1044, 1040, 1108, 1104, 1100}},
        {AccessOrder::random_permute, PermutationScope::block, 3, {1, 0}, {1004, 1008, 1000, 1024, 1028, 1020}},
        {AccessOrder::random_permute, PermutationScope::block, 3, {3, 2}, {1048, 1044, 1040, 1108, 1104, 1100}},
        {AccessOrder::random_permute, PermutationScope::task, 1, {1, 0}, {1012, 1016, 1020, 1004, 1008, 1000}},
        {AccessOrder::random_permute, PermutationScope::task, 1, {3, 2}, {1084, 1068, 1080, 1076, 1064, 1072}},
        {AccessOrder::random_permute, PermutationScope::task, 2, {1, 0}, {1020, 1024, 1028, 1004, 1008, 1000}},
        {AccessOrder::random_permute, PermutationScope::task, 2, {3, 2}, {1108, 1044, 1104, 1100, 1040, 1048}},
        {AccessOrder::random_permute, PermutationScope::task, 3, {1, 0}, {1040, 1024, 1028, 1004, 1044, 1000}},
        {AccessOrder::random_permute, PermutationScope::task, 3, {3, 2}, {1108, 1044, 1168, 1164, 1040, 1160}},
        {AccessOrder::random_permute, PermutationScope::file, 1, {1, 0}, {1016, 1000, 1012, 1004, 1020, 1008}},
        {AccessOrder::random_permute, PermutationScope::file, 1, {3, 2}, {1000, 1044, 1080, 1072, 1040, 1020}},
        {AccessOrder::random_permute, PermutationScope::file, 2, {1, 0}, {1024, 1000, 1020, 1004, 1028, 1008}},
        {AccessOrder::random_permute, PermutationScope::file, 2, {3, 2}, {1000, 1080, 1104, 1048, 1028, 1068}},
        {AccessOrder::random_permute, PermutationScope::file, 3, {1, 0}, {1024, 1040, 1044, 1004, 1028, 1048}},
        {AccessOrder::random_permute, PermutationScope::file, 3, {3, 2}, {1128, 1048, 1144, 1100, 1124, 1164}},
        {AccessOrder::random_replace, PermutationScope::block, 1, {1, 0}, {1016, 1008, 1012, 1000, 1016, 1008}},
        {AccessOrder::random_replace, PermutationScope::block, 1, {3, 2}, {1080, 1068, 1072, 1080, 1076, 1084}},
        {AccessOrder::random_replace, PermutationScope::block, 2, {1, 0}, {1008, 1004, 1004, 1020, 1028, 1024}},
        {AccessOrder::random_replace, PermutationScope::block, 2, {3, 2}, {1048, 1040, 1044, 1108, 1104, 1108}},
        {AccessOrder::random_replace, PermutationScope::block, 3, {1, 0}, {1008, 1004, 1004, 1020, 1028, 1024}},
        {AccessOrder::random_replace, PermutationScope::block, 3, {3, 2}, {1048, 1040, 1044, 1108, 1104, 1108}},
        {AccessOrder::random_replace, PermutationScope::task, 1, {1, 0}, {1016, 1008, 1012, 1000, 1016, 1008}},
        {AccessOrder::random_replace, PermutationScope::task, 1, {3, 2}, {1080, 1068, 1072, 1080, 1076, 1084}},
        {AccessOrder::random_replace, PermutationScope::task, 2, {1, 0}, {1024, 1008, 1020, 1000, 1024, 1008}},
        {AccessOrder::random_replace, PermutationScope::task, 2, {3, 2}, {1104, 1044, 1048, 1104, 1100, 1108}},
        {AccessOrder::random_replace, PermutationScope::task, 3, {1, 0}, {1040, 1020, 1024, 1004, 1040, 1020}},
        {AccessOrder::random_replace, PermutationScope::task, 3, {3, 2}, {1160, 1044, 1100, 1160, 1104, 1168}},
        {AccessOrder::random_replace, PermutationScope::file, 1, {1, 0}, {1012, 1016, 1020, 1012, 1004, 1020}},
        {AccessOrder::random_replace, PermutationScope::file, 1, {3, 2}, {1000, 1012, 1048, 1004, 1044, 1012}},
        {AccessOrder::random_replace, PermutationScope::file, 2, {1, 0}, {1020, 1024, 1028, 1020, 1004, 1028}},
        {AccessOrder::random_replace, PermutationScope::file, 2, {3, 2}, {1000, 1060, 1084, 1004, 1080, 1060}},
        {AccessOrder::random_replace, PermutationScope::file, 3, {1, 0}, {1024, 1044, 1044, 1024, 1008, 1048}},
        {AccessOrder::random_replace, PermutationScope::file, 3, {3, 2}, {1020, 1104, 1160, 1024, 1068, 1104}},
    };
    for (const ReferenceOffsets& example : table) {
        CAPTURE(static_cast<int>(example.order));
        CAPTURE(static_cast<int>(example.scope));
        CAPTURE(example.segments);
        CAPTURE(example.share.index);
        Access access = access_of(4, example.segments == 1 ? 6 : 3, example.order, example.scope);
        access.gap = 8;
        access.offset = 1000;
        access.seed = 7;
        const Geometry geometry(access, example.segments, example.share, 9);
        std::vector<std::uint64_t> drawn(example.offsets.size());
        geometry.fill_offsets(0, 1, drawn);
        CHECK(drawn == example.offsets);
        CHECK(geometry.offset_of(4, 1) == example.offsets[4]);
    }
    Access within = access_of(4, 3, AccessOrder::random_replace);
    within.offset = 1000;
    within.seed = 7;
    within.within = 400;
    std::vector<std::uint64_t> drawn(6);
    Geometry(within, 2, {3, 2}, 9).fill_offsets(0, 1, drawn);
    CHECK(drawn == std::vector<std::uint64_t>{1264, 1080, 1168, 1272, 1216, 1360});
}

TEST_CASE("reverse and sequential offsets for up to three segments") {
    struct ReferenceOffsets {
        AccessOrder order;
        std::uint64_t segments;
        std::vector<std::uint64_t> offsets;  ///< from the second operation on
    };
    // Two sharers, this is the second: blocks of 2 * 4 B and a gap of 2 B begin at 10, 30, 50.
    for (const ReferenceOffsets& example : {ReferenceOffsets{AccessOrder::sequential, 1, {14}},
                                            {AccessOrder::sequential, 2, {14, 30, 34}},
                                            {AccessOrder::sequential, 3, {14, 30, 34, 50, 54}},
                                            {AccessOrder::reverse, 1, {10}},
                                            {AccessOrder::reverse, 2, {30, 14, 10}},
                                            {AccessOrder::reverse, 3, {50, 34, 30, 14, 10}}}) {
        CAPTURE(example.segments);
        Access access = access_of(4, 2, example.order);
        access.gap = 2;
        const Geometry geometry(access, example.segments, {2, 1}, 0);
        std::vector<std::uint64_t> places(example.offsets.size());
        geometry.fill_offsets(1, 0, places);
        CHECK(places == example.offsets);
        CHECK(geometry.operation_count() == places.size() + 1);
        CHECK(geometry.transfer_bytes() == 4);
        CHECK(geometry.end_of_file() == example.segments * 20 - 2);
    }
    const Geometry alone(access_of(4, 2), 1, {}, 0);  // who shares with nobody
    CHECK(offsets(alone) == std::vector<std::uint64_t>{0, 4});
    CHECK(alone.block_distance() == 8);
    CHECK(alone.first_block_offset() == 0);
}

TEST_CASE("drawing within one transfer is always there") {
    Access access = access_of(8, 4, AccessOrder::random_replace);
    access.offset = 1000;
    access.within = 8;
    const Geometry geometry(access, 3, {2, 1}, 0);
    CHECK(geometry.end_of_file() == 1008);
    CHECK(offsets(geometry) == std::vector<std::uint64_t>(12, 1000));
}

TEST_CASE("one-byte accesses cover the entire file") {
    const Geometry geometry(access_of(1, 4, AccessOrder::random_replace), 100, {1, 0}, 0);
    CHECK(geometry.end_of_file() == 400);
    const std::vector<std::uint64_t> sequence = offsets(geometry);
    CHECK(*std::max_element(sequence.begin(), sequence.end()) > 300);
}
