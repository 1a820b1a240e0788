// SPDX-License-Identifier: Apache-2.0
// What is found wrong with a number, each at its limit: just within nothing is said, just beyond it is.
#include "results/phase_findings.hpp"
#include "named_findings.hpp"
#include "rows.hpp"

#include <doctest/doctest.h>
#include <algorithm>
#include <functional>
#include <set>
#include <string>

using sonde::plan::Op;
using sonde::results::Circumstances;
using sonde::results::find_phase_findings;
using sonde::results::PhaseFacts;
using sonde::results::TaskRow;
using sonde::results::Totals;
using sonde::tests::row_of;
using sonde::tests::second;

namespace {

constexpr std::uint64_t gib = 1ULL << 30U;

/// A direct read of 10 s by four tasks on a node of 16 GiB and 8 cores, about which there is nothing to say.
struct Known {
    sonde::plan::Phase phase;
    Totals totals;
    PhaseFacts facts;
    Circumstances circumstances;

    Known() {
        phase.id = "p";
        phase.op = Op::read;
        phase.data.io.direct = true;
        phase.data.access.transfer = 1024;
        facts.stopped_by = "volume";
        circumstances.stores_data = true;
        circumstances.tasks = circumstances.tasks_per_node = 4;
        circumstances.cpus = 8;
        circumstances.node_memory = 16 * gib;
        circumstances.residency = 0;
        circumstances.residency_known = true;
        totals.bytes[0] = 4 * gib;
        totals.operations[0] = totals.planned_operations = 4096;
        lasts(10 * second);
        for (int task = 0; task < 4; ++task) {
            totals.rows.push_back(row_of(task, 0, 0, 10 * second, 0));
            totals.rows.back().next_operation = gib / 1024;
        }
    }
    void lasts(std::int64_t ns) {
        totals.part = {};
        totals.part[sonde::meters::part_transfer].add(0, static_cast<std::uint64_t>(ns));
    }
};

using Change = std::function<void(Known&)>;

std::vector<nlohmann::ordered_json> found(const Change& change) {
    Known sample;
    change(sample);
    sample.circumstances.phase = &sample.phase;
    return find_phase_findings(sample.totals, sample.facts, sample.circumstances);
}

std::string said(const Change& change) {
    return sonde::tests::names_of(found(change));
}

void write_buffered(Known& k) {
    k.phase.op = Op::write;
    k.phase.data.io.direct = false;
    k.totals.bytes = {0, 4 * gib};
}

void read_buffered(Known& k) {
    k.phase.data.io.direct = false;
}

}  // namespace

TEST_CASE("flawless_phase_has_no_findings") {
    CHECK(said([](Known&) {}) == "");
}

TEST_CASE("read_from_page_cache_is_found") {
    const auto residency = [](double share, double allowed) {
        return said([share, allowed](Known& k) {
            read_buffered(k);
            k.circumstances.residency = share;
            if (allowed >= 0) {
                k.phase.valid.max_residency = allowed;
            }
        });
    };
    CHECK(residency(0.01, -1) == "");
    CHECK(residency(0.011, -1) == "warning:cache_suspect");
    CHECK(residency(0.5, 0.5) == "");
    CHECK(residency(0.51, 0.5) == "warning:cache_suspect");
    CHECK(said([](Known& k) {
              read_buffered(k);
              k.circumstances.residency_known = false;
          }) == "info:cache_unknown");
    const auto all = found([](Known& k) {
        read_buffered(k);
        k.circumstances.residency = 0.37;
    });
    REQUIRE(all.size() == 1);
    CHECK(all[0].at("text") == "37 % of the data was in this node's page cache before the phase: not a storage number");
    CHECK(all[0].at("phase") == "p");
    CHECK(all[0].at("evidence").at("residency") == 0.37);
    CHECK(all[0].at("evidence").at("allowed") == 0.01);
}

TEST_CASE("direct_transfer_above_device_request_is_found") {
    const auto transfer = [](
                              std::uint64_t bytes, std::uint64_t maximum, const Change& change = [](Known&) {}) {
        return found([&](Known& k) {
            k.phase.data.access.transfer = bytes;
            k.circumstances.maximum_request = maximum;
            change(k);
        });
    };
    constexpr std::uint64_t mib = 1ULL << 20U;
    CHECK(transfer(mib, mib).empty());
    CHECK(transfer(16 * mib, 0).empty());
    CHECK(transfer(16 * mib, mib, [](Known& k) { k.circumstances.stores_data = false; }).empty());
    CHECK(transfer(16 * mib, mib, [](Known& k) { k.totals.operations[0] = k.totals.planned_operations = 0; }).empty());
    CHECK(transfer(16 * mib, mib, read_buffered).empty());
    const auto findings = transfer(16 * mib, 3 * mib / 2);
    REQUIRE(findings.size() == 1);
    CHECK(findings[0].at("id") == "requests_split");
    CHECK(findings[0].at("severity") == "info");
    CHECK(findings[0].at("text") ==
          "the kernel splits each transfer of 16 MiB into at least 11 requests: the device takes 1.5 MiB at most");
    CHECK(findings[0].at("evidence").at("requests") == 11);
    CHECK(findings[0].at("evidence").at("maximum_request_bytes") == 3 * mib / 2);
    CHECK(transfer(mib + 1, mib).at(0).at("evidence").at("requests") == 2);
}

TEST_CASE("cache_findings_skip_direct_io_names_and_null") {
    CHECK(said([](Known& k) { k.circumstances.residency = 0.9; }) == "");
    CHECK(said([](Known& k) {
              read_buffered(k);
              k.circumstances.residency = 0.9;
              k.circumstances.stores_data = false;
          }) == "");
    CHECK(said([](Known& k) {
              read_buffered(k);
              k.circumstances.residency = 0.9;
              k.phase.meta.emplace();
          }) == "");
    CHECK(said([](Known& k) {
              read_buffered(k);
              k.circumstances.residency = 0.9;
              k.circumstances.memory_backed = true;
          }) == "info:memory_backed");
}

TEST_CASE("repeated_pattern_within_memory_is_cache") {
    const auto read = [](std::uint64_t bytes, std::uint64_t memory, int nodes) {
        return said([bytes, memory, nodes](Known& k) {
            read_buffered(k);
            k.totals.bytes[0] = bytes;
            k.circumstances.node_memory = memory;
            k.circumstances.nodes = nodes;
        });
    };
    // 4 GiB are one pass; a tenth more is not yet a second one.
    CHECK(read(4 * gib + 4 * gib / 10, 16 * gib, 1) == "");
    CHECK(read(4 * gib + 4 * gib / 10 + 1, 16 * gib, 1) == "warning:cache_suspect");
    CHECK(read(12 * gib, 4 * gib, 1) == "");
    CHECK(read(12 * gib, 4 * gib, 2) == "warning:cache_suspect");
    const auto all = found([](Known& k) {
        read_buffered(k);
        k.totals.bytes[0] = 12 * gib;
    });
    REQUIRE(all.size() == 1);
    CHECK(all[0].at("text").get<std::string>().find("repeated 3.0 times") != std::string::npos);
    CHECK(all[0].at("evidence").at("first_pass_bytes") == 4 * gib);
    CHECK(all[0].at("evidence").at("memory_bytes") == 16 * gib);
}

TEST_CASE("write_without_fsync_is_not_storage") {
    // The lab judges alike: tests/lab/findings/test_classification.py.
    for (const std::uint64_t bytes : {gib, 16 * gib, 60 * gib, 600 * gib}) {
        CHECK(said([bytes](Known& k) {
                  write_buffered(k);
                  k.totals.bytes[1] = bytes;
              }) == "warning:cache_suspect");
    }
    CHECK(said([](Known& k) {
              write_buffered(k);
              k.phase.data.io.fsync = sonde::plan::Fsync::end;
          }) == "");
    CHECK(said([](Known& k) {
              write_buffered(k);
              k.phase.data.io.sync = sonde::plan::Sync::dsync;
          }) == "");
    CHECK(said([](Known& k) {
              write_buffered(k);
              k.totals.bytes[1] = 0;
          }) == "");
}

TEST_CASE("short_phase_is_found_by_default_or_plan_limit") {
    CHECK(said([](Known& k) { k.lasts(second); }).find("too_short") == std::string::npos);
    CHECK(said([](Known& k) { k.lasts(second - 1); }).find("info:too_short") != std::string::npos);
    CHECK(said([](Known& k) { k.phase.valid.min_time = 10 * second; }) == "");
    CHECK(said([](Known& k) { k.phase.valid.min_time = 10 * second + 1; }) == "warning:too_short");
}

TEST_CASE("undone_operations_without_time_limit_are_a_finding") {
    const auto undone = [](const char* stopped_by) {
        return said([stopped_by](Known& k) {
            k.totals.planned_operations = 5000;
            k.facts.stopped_by = stopped_by;
        });
    };
    CHECK(undone("items") == "info:coverage");
    CHECK(undone("stonewall") == "");
    CHECK(undone("time") == "");
    const auto all = found([](Known& k) {
        k.totals.operations = {1000, 200};
        k.totals.file_operations = 50;
        k.totals.planned_operations = 5000;
    });
    REQUIRE(all.size() == 1);
    CHECK(all[0].at("text") == "25.0 % of the planned operations were done (stopped by volume)");
    CHECK(all[0].at("evidence").at("done_ops") == 1250);
    CHECK(all[0].at("evidence").at("planned_ops") == 5000);
}

TEST_CASE("drifting_clock_is_error_and_misaligned_clock_warning") {
    CHECK(said([](Known& k) { k.circumstances.clock_drift_ns = second / 100; }) == "");
    CHECK(said([](Known& k) { k.circumstances.clock_drift_ns = second / 100 + 1; }) == "invalid:clock");
    CHECK(said([](Known& k) { k.circumstances.clock_drift_ns = -second / 50; }) == "invalid:clock");
}

TEST_CASE("node_clock_misalignment_and_drift_are_found") {
    const auto clock = [](sonde::results::NodeClock second_node) {
        second_node.node = 1;
        return [second_node](Known& k) { k.facts.clocks = {{}, second_node}; };
    };
    CHECK(said(clock({.offset_ns = 7'000 * second})) == "");
    CHECK(said(clock({.error_ns = second / 10})) == "");
    CHECK(said(clock({.error_ns = second / 10 + 1})) == "warning:clock_alignment");
    CHECK(said(clock({.drift_ns = second / 10})) == "");
    CHECK(said(clock({.drift_ns = -second / 10 - 1})) == "invalid:clock_drift");
    CHECK(said(clock({.drift_ns = second / 5, .drift_error_ns = second / 10})) == "");
    CHECK(said(clock({.drift_ns = second / 5, .drift_error_ns = second / 10 - 1})) == "invalid:clock_drift");
}

TEST_CASE("slow_node_is_named_instead_of_its_tasks") {
    // Two tasks a node; node 1 is `times` slower in all its tasks.
    const auto slow = [](std::int64_t first, std::int64_t second_task) {
        return found([=](Known& k) {
            k.facts.hosts = {"n1", "n2"};
            for (std::size_t i = 0; i < 4; ++i) {
                k.totals.rows[i].node = static_cast<int>(i / 2);
                k.totals.rows[i].bytes = gib;
                k.totals.rows[i].end_ns = (i == 2 ? first : i == 3 ? second_task : 1) * second;
            }
            k.lasts(std::max(first, second_task) * second);
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

TEST_CASE("task_of_1_5_times_mean_is_named") {
    const auto slow = [](std::int64_t ns) {
        return found([ns](Known& k) {
            k.totals.rows[2].end_ns = ns;
            k.totals.rows[2].node = 3;
            k.lasts(ns);
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
    CHECK(said([](Known& k) { k.totals.rows.resize(1); }) == "");
}

TEST_CASE("late_start_busy_cpu_and_other_load_are_found") {
    const auto starts = [](std::int64_t ns) { return said([ns](Known& k) { k.totals.rows[1].start_ns = ns; }); };
    CHECK(starts(second / 2) == "");
    CHECK(starts(second / 2 + 1) == "info:late_start");
    const auto busy = [](std::uint64_t user, std::uint64_t system, int cpus, int nodes, bool stores) {
        return said([=](Known& k) {
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
    CHECK(said([](Known& k) { k.circumstances.other_cores = 0.79; }) == "");
    CHECK(said([](Known& k) { k.circumstances.other_cores = 0.81; }) == "warning:noisy_node");
    const auto loaded = [](int cpus, int tasks_per_node, double other_cores) {
        return said([=](Known& k) {
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
    CHECK(said([](Known& k) {
              k.circumstances.other_cores = 0.26;
              k.lasts(second / 2);
          }).find("noisy_node") == std::string::npos);
}

TEST_CASE("findings_about_data") {
    const auto blocks = [](std::uint64_t disk, double compressible, double duplicates) {
        return said([=](Known& k) {
            k.circumstances.file_bytes = 1000;
            k.circumstances.disk_bytes = disk;
            k.phase.data.payload.compressible = compressible;
            k.phase.data.payload.duplicates = duplicates;
        });
    };
    CHECK(blocks(900, 0, 0) == "");
    CHECK(blocks(899, 0, 0) == "warning:fewer_blocks");
    CHECK(blocks(100, 0.5, 0) == "");
    CHECK(blocks(100, 0, 0.5) == "");
    CHECK(said([](Known& k) {
              k.circumstances.file_bytes = 1000;
              k.phase.data.payload.kind = sonde::plan::PayloadKind::zero;
          }) == "");
    CHECK(said([](Known& k) { k.totals.short_operations = 1; }) == "info:short_operations");
    CHECK(said([](Known& k) {
              k.circumstances.verify_asked = true;
              k.totals.checked_bytes = 4 * gib;
          }) == "");
    const auto all = found([](Known& k) {
        k.circumstances.verify_asked = true;
        k.totals.checked_bytes = 3 * gib;
    });
    REQUIRE(all.size() == 1);
    CHECK(all[0].at("id") == "not_verified");
    CHECK(all[0].at("text").get<std::string>().starts_with("25 % of the data was not verified"));
    CHECK(said([](Known& k) {
              k.totals.checked_bytes = 4 * gib;
              k.phase.data.io.queue_depth = 2;
          }) == "info:verify_disturbs");
}

TEST_CASE("most_severe_finding_comes_first") {
    CHECK(said([](Known& k) {
              k.circumstances.clock_drift_ns = second;
              k.circumstances.other_cores = 0.9;
              k.totals.short_operations = 1;
              k.totals.planned_operations = 9999;
          }) == "invalid:clock warning:noisy_node info:coverage info:short_operations");
}

TEST_CASE("sentences_have_figures_of_evidence") {
    using nlohmann::ordered_json;
    const auto only = [](const Change& change) {
        const auto all = found(change);
        REQUIRE(all.size() == 1);
        return all[0];
    };
    const auto late = only([](Known& k) {
        k.totals.rows[1].start_ns = 2'500'000'000;
        k.circumstances.tasks_per_node = 4;
    });
    CHECK(late.at("text") == "the last task began 2.500 s after the first");
    CHECK(late.at("evidence") == ordered_json{{"latest_start_s", 2.5}, {"cpus", 8}, {"tasks_per_node", 4}});
    const auto busy = only([](Known& k) {
        for (TaskRow& row : k.totals.rows) {
            row.user_ns = 8 * second;
            row.system_ns = 2 * second;
        }
    });
    CHECK(busy.at("text") ==
          "the tasks used 100 % of the cores they could use: the CPU, not the storage, set the rate");
    CHECK(busy.at("evidence") == ordered_json{{"cores_used", 4.0}, {"cores", 4.0}});
    const auto noisy = only([](Known& k) { k.circumstances.other_cores = 3; });
    CHECK(noisy.at("text") == "other processes used 3.0 of the 8 cores of this node during the phase");
    CHECK(noisy.at("evidence") == ordered_json{{"other_cores", 3.0}, {"cpus", 8}, {"tasks_per_node", 4}});
    const auto brief = only([](Known& k) { k.phase.valid.min_time = 20 * second; });
    CHECK(brief.at("text") == "the phase took 10.000 s, less than 20 s: start and end weigh in the rate");
    CHECK(brief.at("evidence") == ordered_json{{"elapsed_s", 10.0}, {"wanted_s", 20.0}});
    const auto drift = only([](Known& k) { k.circumstances.clock_drift_ns = -second; });
    CHECK(drift.at("text") == "the time-stamp counter and CLOCK_MONOTONIC differ by 1 s over the phase");
    CHECK(drift.at("evidence") == ordered_json{{"drift_s", 1.0}, {"elapsed_s", 10.0}});
    const auto blocks = only([](Known& k) {
        k.circumstances.file_bytes = 1000;
        k.circumstances.disk_bytes = 250;
    });
    CHECK(blocks.at("text").get<std::string>().rfind("only 25 % of the written bytes occupy blocks", 0) == 0);
    CHECK(blocks.at("evidence") == ordered_json{{"disk_bytes", 250}, {"file_bytes", 1000}});
    const auto unsafe = only([](Known& k) { write_buffered(k); });
    CHECK(unsafe.at("evidence") == ordered_json{{"written_bytes", 4 * gib}, {"memory_bytes", 16 * gib}});
}

TEST_CASE("worst_aligned_and_most_drifting_clock_are_named") {
    const auto clocks = [](std::vector<sonde::results::NodeClock> of_nodes) {
        return found([&](Known& k) { k.facts.clocks = of_nodes; });
    };
    using nlohmann::ordered_json;
    const auto aligned = clocks({{0, 0, second / 5, 0, 0}, {1, 0, second / 2, 0, 0}, {2, 0, second / 2, 0, 0}});
    REQUIRE(aligned.size() == 1);
    CHECK(aligned[0].at("text") == "the clock of node 1 is aligned to 0.5 s only, more than 1 % of the phase");
    CHECK(aligned[0].at("evidence") == ordered_json{{"error_s", 0.5}, {"elapsed_s", 10.0}, {"node", 1}});
    // Node 0 seems to have moved most, but that is hardly certain.
    const auto moved = clocks({{0, 0, 0, 2 * second, 19 * second / 10}, {1, 0, 0, -second, 0}, {2, 0, 0, second, 0}});
    REQUIRE(moved.size() == 1);
    CHECK(moved[0].at("text") == "the clock of node 1 moved by -1 s against the root's during the phase");
    CHECK(moved[0].at("evidence") == ordered_json{{"moved_s", -1.0}, {"elapsed_s", 10.0}, {"node", 1}});
    Known timeless;
    timeless.circumstances.phase = &timeless.phase;
    timeless.totals.part = {};
    timeless.facts.clocks = {{0, 0, second, second, 0}};
    for (const auto& finding : find_phase_findings(timeless.totals, timeless.facts, timeless.circumstances)) {
        CHECK(finding.at("id").get<std::string>().find("clock") == std::string::npos);
    }
}

TEST_CASE("slow_node_needs_several_tasks_and_time") {
    const auto nodes = [](int tasks_of_slow, std::uint64_t slow_bytes, std::int64_t lasts, bool names = false) {
        return found([=](Known& k) {
            k.totals.rows.clear();
            for (int task = 0; task < 2 + tasks_of_slow; ++task) {
                TaskRow& row = k.totals.rows.emplace_back(row_of(task, task < 2 ? 0 : 1, 0, lasts, 0));
                (names ? row.operations : row.bytes) = row.node == 0 ? 1000 : slow_bytes;
                row.next_operation = gib / 1024;
            }
            if (names) {
                k.totals.bytes = {};
            }
            k.lasts(lasts);
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

TEST_CASE("limited_rate_is_attributed_to_limit_or_storage") {
    const auto limited = [](double iops, double rate) {
        return said([=](Known& k) {
            k.phase.data.io.iops_limit = iops;
            if (rate > 0) {
                k.phase.data.io.rate_limit = rate;
            }
            for (TaskRow& row : k.totals.rows) {  // 100 operations and 1 MB a second
                row.operations = 1000;
                row.bytes = 10'000'000;
                row.transfer_ns = 10 * second;
            }
        });
    };
    CHECK(limited(100, 0) == "info:rate_limited");
    CHECK(limited(100 / 0.951, 0) == "info:rate_limited");
    CHECK(limited(100 / 0.949, 0) == "warning:limit_not_reached");
    CHECK(limited(1000, 1e6) == "info:rate_limited");
    CHECK(limited(1000, 1e7) == "warning:limit_not_reached");
}

TEST_CASE("busy_accelerators_set_the_rate") {
    const auto train = [](std::uint64_t rated, double utilization_sum) {
        return said([=](Known& k) {
            k.totals.training.rated = rated;
            k.totals.training.utilization_sum = utilization_sum;
        });
    };
    CHECK(train(4, 3.81) == "info:rate_limited");
    CHECK(train(4, 3.79) == "");
    CHECK(train(0, 0) == "");
}

TEST_CASE("late_node_is_rated_by_its_own_time") {
    CHECK(said([](Known& k) {
              k.totals.rows.clear();
              for (int task = 0; task < 4; ++task) {
                  const bool late = task >= 2;  // half as long, half as much
                  k.totals.rows.push_back(
                      row_of(task, late ? 1 : 0, late ? 5 * second : 0, 10 * second, late ? 500 : 1000));
                  k.totals.rows.back().next_operation = gib / 1024;
              }
          }).find("slow_node") == std::string::npos);
}
