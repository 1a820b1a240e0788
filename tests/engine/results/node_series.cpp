// SPDX-License-Identifier: Apache-2.0
// Series of nodes: exact while they are few, spread and extremes when they are many, the same however they were joined.
#include "results/node_series_lines.hpp"
#include "rows.hpp"
#include "streams.hpp"

#include <doctest/doctest.h>
#include <algorithm>
#include <array>
#include <random>
#include <set>
#include <string>
#include <vector>

using sonde::results::make_node_series_lines;
using sonde::results::NodeSeriesSet;
using sonde::results::Totals;
using sonde::tests::mb;
using sonde::tests::ms;
using sonde::tests::row_of;
using sonde::tests::Stream;
using sonde::tests::totals_of;

namespace {

/// A node whose one stream moves `bytes[i]` in slice i of 0.1 s, all through.
NodeSeriesSet is_one_node(int node, const std::vector<std::uint64_t>& bytes) {
    const std::vector<std::uint64_t> calls(bytes.size(), 1);
    NodeSeriesSet set;
    set.add({node, 0, static_cast<std::int64_t>(bytes.size()) * 100 * ms, 100 * ms, 512, bytes.data(), calls.data(),
             bytes.size()});
    return set;
}

NodeSeriesSet joined(NodeSeriesSet first_half, const NodeSeriesSet& right) {
    first_half.merge(right);
    return first_half;
}

/// Nodes `first` to `last` (not included), node n at a rate of (n * 7919 mod 10007) + 1 MB a slice: no two alike.
std::uint64_t rate_of(int node) {
    return (static_cast<std::uint64_t>(node) * 7919 % 10007 + 1) * mb;
}
NodeSeriesSet nodes_between(int first, int last, std::size_t slices = 3) {
    NodeSeriesSet all;
    for (int node = first; node < last; ++node) {
        all.merge(is_one_node(node, std::vector<std::uint64_t>(slices, rate_of(node))));
    }
    return all;
}

/// The same as a reduction over a binary tree does it, packed on the way.
NodeSeriesSet in_a_tree(int first, int last, std::size_t slices = 3) {
    if (last - first == 1) {
        return is_one_node(first, std::vector<std::uint64_t>(slices, rate_of(first)));
    }
    const int middle = first + (last - first) / 2;
    const NodeSeriesSet first_half = NodeSeriesSet::unpack(in_a_tree(first, middle, slices).pack());
    return joined(first_half, in_a_tree(middle, last, slices));
}

std::vector<std::uint64_t> numbers(const nlohmann::ordered_json& values) {
    return values.get<std::vector<std::uint64_t>>();
}

}  // namespace

TEST_CASE("node_series_add_up_to_total_series") {
    Stream first(0);
    first.write(0, 1000, 100, mb);
    Stream second(1);
    second.write(0, 500, 100, mb);
    Stream other(2);
    other.write(200, 1000, 80, 2 * mb);
    Totals all = totals_of({&first, &second}, 0);
    all.merge(totals_of({&other}, 1));
    const auto lines = make_node_series_lines(all);
    REQUIRE(lines.size() == 2);
    CHECK(lines[0].at("node") == 0);
    CHECK(lines[1].at("node") == 1);
    CHECK(numbers(lines[0].at("bytes")) == std::vector<std::uint64_t>{30 * mb, 30 * mb, 30 * mb, 30 * mb, 30 * mb,
                                                                      10 * mb, 10 * mb, 10 * mb, 10 * mb, 10 * mb});
    CHECK(numbers(lines[0].at("active")) == std::vector<std::uint64_t>{2, 2, 2, 2, 2, 1, 1, 1, 1, 1});
    CHECK(numbers(lines[1].at("bytes")) ==
          std::vector<std::uint64_t>{0, 0, 20 * mb, 20 * mb, 20 * mb, 20 * mb, 20 * mb, 20 * mb, 20 * mb, 20 * mb});
    CHECK(numbers(lines[1].at("active")) == std::vector<std::uint64_t>{0, 0, 1, 1, 1, 1, 1, 1, 1, 1});
    CHECK(numbers(lines[1].at("ops")) == std::vector<std::uint64_t>{0, 0, 10, 10, 10, 10, 10, 10, 10, 10});
    const auto total = sonde::results::make_series_line(all);
    for (std::size_t i = 0; i < 10; ++i) {
        for (const char* name : {"bytes", "ops", "active"}) {
            CHECK(total.at(name).at(i) == lines[0].at(name).at(i).get<int>() + lines[1].at(name).at(i).get<int>());
        }
    }
}

TEST_CASE("single_node_has_no_node_series") {
    Stream only(0);
    only.write(0, 1000, 100, mb);
    CHECK(make_node_series_lines(totals_of({&only})).empty());
}

TEST_CASE("idle_stream_does_not_extend_node_time") {
    Stream works(0);
    works.write(500, 1000, 50, mb);
    Stream waits(1);
    const Totals all = totals_of({&works, &waits});
    REQUIRE(all.node_series.series().size() == 1);
    CHECK(all.node_series.series()[0].start_ns == 500 * ms);
    CHECK(all.node_series.series()[0].end_ns == 1000 * ms);
}

TEST_CASE("slowest_node_without_bytes_has_fewest_operations") {
    NodeSeriesSet all;
    const std::vector<std::uint64_t> none(2, 0);
    for (int node = 0; node < 20; ++node) {
        const std::vector<std::uint64_t> calls(2, static_cast<std::uint64_t>(100 - node / 2));
        all.add({node, 0, 200 * ms, 100 * ms, 512, none.data(), calls.data(), 2});
    }
    CHECK(all.slowest() == std::vector<int>{18, 19, 16, 17, 14, 15, 12, 13});
    CHECK(all.fastest() == std::vector<int>{1, 0, 3, 2, 5, 4, 7, 6});
}

TEST_CASE("node_rate_uses_time_of_node") {
    NodeSeriesSet all;
    const std::vector<std::uint64_t> bytes(4, mb);
    all.add({0, 0, 400 * ms, 100 * ms, 512, bytes.data(), bytes.data(), 4});
    all.add({1, 200 * ms, 400 * ms, 100 * ms, 512, bytes.data(), bytes.data(), 4});
    all.add({2, 0, 300 * ms, 100 * ms, 512, bytes.data(), bytes.data(), 4});
    CHECK(all.slowest() == std::vector<int>{0, 2, 1});
    CHECK(all.fastest().empty());  // all of them are among the slowest
    CHECK(all.series()[1].seconds() == doctest::Approx(0.2));
}

TEST_CASE("node_counts_in_slices_of_full_activity") {
    NodeSeriesSet all;
    const std::vector<std::uint64_t> bytes(3, mb);
    const std::vector<std::uint64_t> calls(3, 7);
    for (int node = 0; node < 300; ++node) {
        const std::int64_t start = node < 100 ? 0 : node < 200 ? 1 : 100 * ms;
        const std::int64_t end = node % 2 == 0 ? 300 * ms : 300 * ms - 1;
        all.add({node, start, end, 100 * ms, 512, bytes.data(), calls.data(), 3});
    }
    all.enforce_limit();
    const auto counted = [](const sonde::results::AmountHistogram& spread) {
        std::uint32_t sum = 0;
        for (const auto& [bucket, count] : spread) {
            sum += count;
        }
        return sum;
    };
    REQUIRE(all.byte_spread().size() == 3);
    CHECK(counted(all.byte_spread()[0]) == 100);
    CHECK(counted(all.byte_spread()[1]) == 300);
    CHECK(counted(all.byte_spread()[2]) == 150);
    CHECK(all.operation_spread()[1] == sonde::results::AmountHistogram{{7, 300}});
    CHECK(all.sum()[0].active_streams == 200);
    CHECK(all.sum()[1].active_streams == 300);
    CHECK(all.sum()[2].operations == 2100);
}

TEST_CASE("more_than_512_slices_are_joined_in_pairs") {
    const std::vector<std::uint64_t> bytes(513, 2);
    const std::vector<std::uint64_t> calls(513, 1);
    NodeSeriesSet all;
    all.add({0, 100 * ms, 513 * 100 * ms, 100 * ms, 513, bytes.data(), calls.data(), 513});
    CHECK(all.slice_ns() == 200 * ms);
    const auto& slices = all.series()[0].slices;
    REQUIRE(slices.size() == 256);  // as many as the plan allows: what is beyond falls into the last
    CHECK(slices[0].bytes == 4);
    CHECK(slices[0].operations == 2);
    CHECK(slices[0].active_streams == 1);
    CHECK(slices[255].bytes == 6);
    NodeSeriesSet exact;
    exact.add({0, 0, 100 * ms, 100 * ms, 512, bytes.data(), calls.data(), 1});
    CHECK(exact.slice_ns() == 100 * ms);
    CHECK(exact.series()[0].bytes == 2);
}

TEST_CASE("series_of_129_nodes_join_slices_in_pairs") {
    Totals totals;
    totals.node_series = nodes_between(0, 128, 512);
    CHECK(make_node_series_lines(totals)[0].at("bytes").size() == 512);
    CHECK(make_node_series_lines(totals)[0].at("slice_s") == doctest::Approx(0.1));
    const std::vector<std::uint64_t> bytes(512, mb);
    const std::vector<std::uint64_t> calls(512, 3);
    totals.node_series = nodes_between(0, 128, 512);
    for (const std::int64_t start : {100 * ms, 300 * ms}) {  // two streams of one node, the second begins later
        totals.node_series.add({128, start, 51'200 * ms, 100 * ms, 512, bytes.data(), calls.data(), 512});
    }
    const auto lines = make_node_series_lines(totals);
    REQUIRE(lines.size() == 129);
    CHECK(lines[128].at("slice_s") == doctest::Approx(0.2));
    CHECK(lines[128].at("bytes").size() == 256);
    CHECK(lines[128].at("bytes")[0] == 4 * mb);
    CHECK(lines[128].at("ops")[0] == 12);
    CHECK(lines[128].at("active")[0] == 1);
    CHECK(lines[128].at("active")[1] == 2);
    CHECK_FALSE(lines[128].contains("extreme"));
}

TEST_CASE("node_series_of_257_nodes_keep_extremes") {
    const NodeSeriesSet few = nodes_between(0, 256);
    CHECK_FALSE(few.is_reduced());
    CHECK(few.series().size() == 256);
    const NodeSeriesSet large_set = nodes_between(0, 257);
    CHECK(large_set.is_reduced());
    CHECK(large_set.nodes() == 257);
    CHECK(large_set.series().size() == 16);
}

TEST_CASE("extremes_and_distribution_of_1000_nodes_are_exact") {
    const NodeSeriesSet large_set = in_a_tree(0, 1000);
    std::vector<std::pair<std::uint64_t, int>> order;
    std::uint64_t sum = 0;
    for (int node = 0; node < 1000; ++node) {
        order.emplace_back(rate_of(node), node);
        sum += rate_of(node);
    }
    std::sort(order.begin(), order.end());
    const std::vector<int> slowest = large_set.slowest();
    const std::vector<int> fastest = large_set.fastest();
    REQUIRE(slowest.size() == 8);
    REQUIRE(fastest.size() == 8);
    for (std::size_t i = 0; i < 8; ++i) {
        CHECK(slowest[i] == order[i].second);
        CHECK(fastest[i] == order[order.size() - 1 - i].second);
    }
    Totals totals;
    totals.node_series = large_set;
    const auto lines = make_node_series_lines(totals);
    REQUIRE(lines.size() == 17);
    CHECK(lines[0].at("scope") == "nodes");
    CHECK(lines[0].at("nodes") == 1000);
    CHECK(numbers(lines[0].at("bytes")) == std::vector<std::uint64_t>(3, sum));
    CHECK(numbers(lines[0].at("active")) == std::vector<std::uint64_t>(3, 1000));
    constexpr std::array<std::pair<const char*, std::size_t>, 5> places{
        {{"min", 0}, {"p25", 249}, {"p50", 499}, {"p75", 749}, {"max", 999}}};
    for (const auto& [name, place] : places) {
        CHECK(lines[0].at("node_rate").at(name).at(1).get<double>() ==
              doctest::Approx(static_cast<double>(order[place].first) * 10).epsilon(0.008));
    }
    CHECK(lines[0].at("node_ops_rate").at("p50").at(1).get<double>() == doctest::Approx(15).epsilon(0.4));
    std::multiset<std::string> labels;
    for (std::size_t i = 1; i < lines.size(); ++i) {
        const int node = lines[i].at("node");
        const bool slow = std::find(slowest.begin(), slowest.end(), node) != slowest.end();
        CHECK(lines[i].at("extreme") == (slow ? "slowest" : "fastest"));
        CHECK(numbers(lines[i].at("bytes")) == std::vector<std::uint64_t>(3, rate_of(node)));
        labels.insert(lines[i].at("extreme"));
    }
    CHECK(labels.count("slowest") == 8);
}

TEST_CASE("node_series_join_is_associative") {
    std::mt19937 random(3);
    for (int round = 0; round < 12; ++round) {
        const int last = std::uniform_int_distribution<int>(2, 700)(random);
        const int cut = std::uniform_int_distribution<int>(1, last - 1)(random);
        const nlohmann::json one_by_one = nodes_between(0, last).pack();
        CHECK(in_a_tree(0, last).pack() == one_by_one);
        CHECK(joined(nodes_between(0, cut), nodes_between(cut, last)).pack() == one_by_one);
        CHECK(joined(nodes_between(cut, last), nodes_between(0, cut)).pack() == one_by_one);
        CHECK(NodeSeriesSet::unpack(one_by_one).pack() == one_by_one);
    }
}

TEST_CASE("added_nodes_are_bounded_without_join") {
    NodeSeriesSet all;
    const std::vector<std::uint64_t> calls(3, 1);
    for (int node = 0; node < 400; ++node) {
        const std::vector<std::uint64_t> bytes(3, rate_of(node));
        all.add({node, 0, 300 * ms, 100 * ms, 512, bytes.data(), calls.data(), 3});
    }
    CHECK(all.series().size() == 400);
    all.enforce_limit();
    CHECK(all.pack() == nodes_between(0, 400).pack());
}

TEST_CASE("many_slices_are_not_multiplied_by_nodes") {
    const std::vector<std::uint64_t> bytes(65536, mb);
    NodeSeriesSet node;
    node.add({0, 0, 65'536 * ms, ms, 65536, bytes.data(), bytes.data(), bytes.size()});
    CHECK(node.slice_ns() == 128 * ms);
    REQUIRE(node.series()[0].slices.size() == 512);
    CHECK(node.series()[0].slices[511].bytes == 128 * mb);
    CHECK(node.series()[0].slices[511].active_streams == 1);
}

TEST_CASE("reduction_message_size_is_bounded") {
    const auto bytes = [](const NodeSeriesSet& nodes) { return nlohmann::json::to_cbor(nodes.pack()).size(); };
    const std::size_t of_300 = bytes(in_a_tree(0, 300, 20));
    const std::size_t of_3000 = bytes(in_a_tree(0, 3000, 20));
    CHECK(of_3000 < 4 * of_300);  // the spread has a place for each bucket that is met, and these become few
    CHECK(bytes(nodes_between(0, 256, 20)) < 256 * 20 * 3 * 10);
}

TEST_CASE("node_series_take_1_to_2_mb_of_record") {
    for (const int nodes : {16, 256, 1000}) {
        CAPTURE(nodes);
        Totals totals;
        totals.node_series = nodes_between(0, nodes, 512);
        std::size_t text = 0;
        std::size_t values = 0;
        std::uint64_t moved_bytes = 0;
        for (const auto& line : make_node_series_lines(totals)) {
            text += line.dump().size();
            if (line.at("scope") == "node") {
                values += line.at("bytes").size();
                for (const auto& slice : line.at("bytes")) {
                    moved_bytes += slice.get<std::uint64_t>();
                }
            }
        }
        CHECK(text < 2 * mb);
        CHECK(values <= 65'536);
        if (nodes <= 256) {
            std::uint64_t truth = 0;
            for (int node = 0; node < nodes; ++node) {
                truth += 512 * rate_of(node);
            }
            CHECK(moved_bytes == truth);  // neighboring slices are joined, none is left out
        }
    }
}

TEST_CASE("phase_of_1000_nodes_takes_less_than_4_mb") {
    Totals totals;
    totals.node_series = in_a_tree(0, 1000, 512);
    totals.slice_ns = 100 * ms;
    totals.sums_of_streams[0].slices.resize(512);
    for (int task = 0; task < 16'000; ++task) {
        auto& row = totals.rows.emplace_back(row_of(task, task / 16, 0, 51'234'567'891, 987'654'321'098));
        row.operations = 123'456;
        row.transfer_ns = row.transfer_end_ns = row.end_ns;
        row.user_ns = 1'234'567'891;
        row.system_ns = 12'345'678'912;
    }
    std::size_t text = sonde::results::make_series_line(totals).dump().size();
    text += sonde::results::make_node_line(totals, {}).dump().size();
    for (const auto& lines : {make_node_series_lines(totals), sonde::results::make_task_lines(totals, {})}) {
        for (const auto& line : lines) {
            text += line.dump().size();
        }
    }
    MESSAGE("bytes of a phase: " << text);
    CHECK(text < 4 * mb);
}
