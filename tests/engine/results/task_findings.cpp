// SPDX-License-Identifier: Apache-2.0
// Findings about slow tasks and nodes, late starts and CPU time, just within each limit and just beyond it.
#include "results/task_findings.hpp"

#include "measured_phase.hpp"

#include <doctest/doctest.h>
#include <algorithm>
#include <string>
#include <vector>

using sonde::results::TaskRow;
using sonde::tests::find_findings;
using sonde::tests::gib;
using sonde::tests::list_finding_ids;
using sonde::tests::MeasuredPhase;
using sonde::tests::row_of;
using sonde::tests::second;

TEST_CASE("slow_node_is_reported_instead_of_its_tasks") {
    // Two tasks a node; node 1 is `times` slower in all its tasks.
    const auto slow = [](std::int64_t first, std::int64_t second_task) {
        return find_findings([=](MeasuredPhase& k) {
            k.facts.hosts = {"n1", "n2"};
            for (std::size_t i = 0; i < 4; ++i) {
                k.totals.rows[i].node = static_cast<int>(i / 2);
                k.totals.rows[i].bytes = gib;
                k.totals.rows[i].end_ns = (i == 2 ? first : i == 3 ? second_task : 1) * second;
            }
            k.set_duration(std::max(first, second_task) * second);
        });
    };
    CHECK(slow(1, 1).empty());
    const auto all = slow(10, 10);
    REQUIRE(all.size() == 1);
    CHECK(all[0].at("id") == "slow_node");
    CHECK(all[0].at("text") ==
          "all 2 tasks on n2 were slower, together 10.0 times, than those of the other nodes: the total rate shows "
          "that node");
    const auto task_only = slow(1, 10);
    REQUIRE(task_only.size() == 1);
    CHECK(task_only[0].at("id") == "imbalance");
    CHECK(task_only[0].at("text").get<std::string>().rfind("task 3 on n2 took", 0) == 0);
}

TEST_CASE("task_of_1_5_times_mean_is_reported") {
    const auto slow = [](std::int64_t ns) {
        return find_findings([ns](MeasuredPhase& k) {
            k.totals.rows[2].end_ns = ns;
            k.totals.rows[2].node = 3;
            k.set_duration(ns);
        });
    };
    CHECK(slow(18 * second).empty());  // mean 12 s
    const auto all = slow(19 * second);
    REQUIRE(all.size() == 1);
    CHECK(all[0].at("id") == "imbalance");
    CHECK(all[0].at("text") ==
          "task 2 on node 3 took 1.55 times the mean of all tasks: the total rate shows the slowest");
    CHECK(all[0].at("evidence").at("task") == 2);
    CHECK(all[0].at("evidence").at("node") == 3);
    CHECK(list_finding_ids([](MeasuredPhase& k) { k.totals.rows.resize(1); }) == "");
}

TEST_CASE("late_start_busy_cpu_and_other_load_are_detected") {
    const auto starts = [](std::int64_t ns) {
        return list_finding_ids([ns](MeasuredPhase& k) { k.totals.rows[1].start_ns = ns; });
    };
    CHECK(starts(second / 2) == "");
    CHECK(starts(second / 2 + 1) == "info:late_start");
    const auto busy = [](std::uint64_t user, std::uint64_t system, int cpus, int nodes, bool stores) {
        return list_finding_ids([=](MeasuredPhase& k) {
            for (TaskRow& row : k.totals.rows) {
                row.user_ns = user;
                row.system_ns = system;
            }
            k.circumstances.cpus = cpus;
            k.circumstances.nodes = nodes;
            k.circumstances.stores_data = stores;
        });
    };
    // Four tasks can use four cores at most, or as many as there are.
    CHECK(busy(4 * second, 5 * second, 8, 1, true) == "");
    CHECK(busy(4 * second, 5 * second + 1, 8, 1, true) == "info:cpu_bound");
    CHECK(busy(4 * second, 5 * second + 1, 8, 1, false) == "");
    CHECK(busy(2 * second, 2 * second, 2, 1, true) == "");
    CHECK(busy(2 * second, 3 * second, 2, 1, true) == "info:cpu_bound");
    CHECK(busy(2 * second, 3 * second, 2, 2, true) == "");
    CHECK(list_finding_ids([](MeasuredPhase& k) { k.circumstances.other_cores = 0.79; }) == "");
    CHECK(list_finding_ids([](MeasuredPhase& k) { k.circumstances.other_cores = 0.81; }) == "warning:noisy_node");
    const auto loaded = [](int cpus, int tasks_per_node, double other_cores) {
        return list_finding_ids([=](MeasuredPhase& k) {
            k.circumstances.cpus = cpus;
            k.circumstances.tasks_per_node = tasks_per_node;
            k.circumstances.other_cores = other_cores;
        });
    };
    // On 128 cores four tasks leave room for a neighbor, 128 tasks do not, and 127 for one core.
    CHECK(loaded(128, 4, 12.7) == "");
    CHECK(loaded(128, 4, 12.9) == "warning:noisy_node");
    CHECK(loaded(128, 128, 0.3) == "warning:noisy_node");
    CHECK(loaded(128, 127, 0.9) == "");
    CHECK(loaded(128, 127, 1.1) == "warning:noisy_node");
    CHECK(loaded(128, 512, 0.3) == "warning:noisy_node");
    CHECK(list_finding_ids([](MeasuredPhase& k) {
              k.circumstances.other_cores = 0.26;
              k.set_duration(second / 2);
          }).find("noisy_node") == std::string::npos);
}

TEST_CASE("slow_node_needs_several_tasks_and_time") {
    const auto nodes = [](int tasks_of_slow, std::uint64_t slow_bytes, std::int64_t lasts, bool names = false) {
        return find_findings([=](MeasuredPhase& k) {
            k.totals.rows.clear();
            for (int task = 0; task < 2 + tasks_of_slow; ++task) {
                TaskRow& row = k.totals.rows.emplace_back(row_of(task, task < 2 ? 0 : 1, 0, lasts, 0));
                (names ? row.operations : row.bytes) = row.node == 0 ? 1000 : slow_bytes;
                row.next_operation = gib / 1024;
            }
            if (names) {
                k.totals.bytes = {};
            }
            k.set_duration(lasts);
        });
    };
    const auto is_slow = [](const std::vector<nlohmann::ordered_json>& all) {
        return std::any_of(all.begin(), all.end(), [](const auto& finding) { return finding.at("id") == "slow_node"; });
    };
    CHECK(is_slow(nodes(2, 499, 10 * second)));
    CHECK_FALSE(is_slow(nodes(2, 500, 10 * second)));
    CHECK_FALSE(is_slow(nodes(1, 100, 10 * second)));
    CHECK(is_slow(nodes(2, 100, 10 * second, true)));
    CHECK_FALSE(is_slow(nodes(2, 100, second / 10)));
    CHECK(is_slow(nodes(2, 100, second / 10 + 1)));
    const auto all = nodes(3, 250, 10 * second);
    REQUIRE(is_slow(all));
    CHECK(all[0].at("evidence") == nlohmann::ordered_json{{"node", 1}, {"times_slower", 4.0}, {"tasks", 3}});
    CHECK(is_slow(nodes(2, 0, 10 * second)));  // a node that moved nothing at all
}

TEST_CASE("late_node_is_rated_by_its_active_time") {
    CHECK(list_finding_ids([](MeasuredPhase& k) {
              k.totals.rows.clear();
              for (int task = 0; task < 4; ++task) {
                  const bool late = task >= 2;  // half as long, half as much
                  k.totals.rows.push_back(
                      row_of(task, late ? 1 : 0, late ? 5 * second : 0, 10 * second, late ? 500 : 1000));
                  k.totals.rows.back().next_operation = gib / 1024;
              }
          }).find("slow_node") == std::string::npos);
}
