// SPDX-License-Identifier: Apache-2.0
// What is found wrong with a number, each at its limit: just within nothing is said, just beyond it is.
#include "results/validity.hpp"

#include <doctest/doctest.h>
#include <functional>
#include <set>
#include <string>

using sonde::plan::Op;
using sonde::results::Circumstances;
using sonde::results::findings_of;
using sonde::results::PhaseFacts;
using sonde::results::TaskRow;
using sonde::results::Totals;

namespace {

constexpr std::int64_t second = 1'000'000'000;
constexpr std::uint64_t gib = 1ULL << 30U;

/// A direct read of 10 s by four tasks on a node of 16 GiB and 8 cores, about which there is nothing to say.
struct Known {
    sonde::plan::Phase phase;
    Totals totals;
    PhaseFacts facts;
    Circumstances about;

    Known() {
        phase.id = "p";
        phase.op = Op::read;
        phase.data.io.direct = true;
        phase.data.access.transfer = 1024;
        facts.stopped_by = "volume";
        about.stores_data = true;
        about.tasks = about.tasks_per_node = 4;
        about.cpus = 8;
        about.node_memory = 16 * gib;
        about.resident = 0;
        about.resident_known = true;
        totals.bytes[0] = 4 * gib;
        totals.operations[0] = totals.planned_operations = 4096;
        lasts(10 * second);
        for (int task = 0; task < 4; ++task) {
            TaskRow row;
            row.task = task;
            row.end_ns = 10 * second;
            row.next_operation = gib / 1024;
            totals.rows.push_back(row);
        }
    }
    void lasts(std::int64_t ns) {
        totals.part = {};
        totals.part[sonde::meters::part_transfer].add(0, static_cast<std::uint64_t>(ns));
    }
};

using Change = std::function<void(Known&)>;

std::vector<nlohmann::ordered_json> found(const Change& change) {
    Known known;
    change(known);
    known.about.phase = &known.phase;
    return findings_of(known.totals, known.facts, known.about);
}

std::string said(const Change& change) {
    std::string all;
    for (const auto& one : found(change)) {
        all += (all.empty() ? "" : " ") + one.at("severity").get<std::string>() + ":" + one.at("id").get<std::string>();
    }
    return all;
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

TEST_CASE("a number that nothing speaks against has no findings") {
    CHECK(said([](Known&) {}) == "");
}

TEST_CASE("a read is suspect above the share of the data that was in the page cache") {
    const auto resident = [](double share, double allowed) {
        return said([share, allowed](Known& k) {
            read_buffered(k);
            k.about.resident = share;
            if (allowed >= 0) {
                k.phase.valid.max_resident = allowed;
            }
        });
    };
    CHECK(resident(0.01, -1) == "");
    CHECK(resident(0.011, -1) == "warning:cache_suspect");
    CHECK(resident(0.5, 0.5) == "");
    CHECK(resident(0.51, 0.5) == "warning:cache_suspect");
    CHECK(said([](Known& k) {
              read_buffered(k);
              k.about.resident_known = false;
          }) == "info:cache_unknown");
    const auto all = found([](Known& k) {
        read_buffered(k);
        k.about.resident = 0.37;
    });
    REQUIRE(all.size() == 1);
    CHECK(all[0].at("text") == "37 % of the data was in this node's page cache before the phase: not a storage number");
    CHECK(all[0].at("phase") == "p");
    CHECK(all[0].at("evidence").at("resident") == 0.37);
    CHECK(all[0].at("evidence").at("allowed") == 0.01);
}

TEST_CASE("direct I/O, names, and backends that store nothing are not asked about caches") {
    CHECK(said([](Known& k) { k.about.resident = 0.9; }) == "");
    CHECK(said([](Known& k) {
              read_buffered(k);
              k.about.resident = 0.9;
              k.about.stores_data = false;
          }) == "");
    CHECK(said([](Known& k) {
              read_buffered(k);
              k.about.resident = 0.9;
              k.phase.meta.emplace();
          }) == "");
    CHECK(said([](Known& k) {
              read_buffered(k);
              k.about.resident = 0.9;
              k.about.memory_backed = true;
          }) == "info:memory_backed");
}

TEST_CASE("a pattern that was repeated came from the cache when memory could hold it") {
    const auto read = [](std::uint64_t bytes, std::uint64_t memory, int nodes) {
        return said([bytes, memory, nodes](Known& k) {
            read_buffered(k);
            k.totals.bytes[0] = bytes;
            k.about.node_memory = memory;
            k.about.nodes = nodes;
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

TEST_CASE("a write that was not made durable is never one to storage, however much it was") {
    // The lab judges alike: tests/lab/findings/test_standing.py.
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

TEST_CASE("a phase is too short below a second, or below what the plan asks for") {
    CHECK(said([](Known& k) { k.lasts(second); }).find("too_short") == std::string::npos);
    CHECK(said([](Known& k) { k.lasts(second - 1); }).find("info:too_short") != std::string::npos);
    CHECK(said([](Known& k) { k.phase.valid.min_time = 10 * second; }) == "");
    CHECK(said([](Known& k) { k.phase.valid.min_time = 10 * second + 1; }) == "warning:too_short");
}

TEST_CASE("what was planned and not done is said, unless time or a stonewall was to end it") {
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

TEST_CASE("clocks that drift make a number invalid, clocks badly aligned a doubtful one") {
    CHECK(said([](Known& k) { k.about.clock_drift_ns = second / 100; }) == "");
    CHECK(said([](Known& k) { k.about.clock_drift_ns = second / 100 + 1; }) == "invalid:clock");
    CHECK(said([](Known& k) { k.about.clock_drift_ns = -second / 50; }) == "invalid:clock");
}

TEST_CASE("clocks of nodes that are badly aligned make a number doubtful, one that moves makes it invalid") {
    const auto clock = [](sonde::results::NodeClock second_node) {
        second_node.node = 1;
        return [second_node](Known& k) { k.facts.clocks = {{}, second_node}; };
    };
    CHECK(said(clock({.offset_ns = 7'000 * second})) == "");
    CHECK(said(clock({.error_ns = second / 10})) == "");
    CHECK(said(clock({.error_ns = second / 10 + 1})) == "warning:clock_alignment");
    CHECK(said(clock({.moved_ns = second / 10})) == "");
    CHECK(said(clock({.moved_ns = -second / 10 - 1})) == "invalid:clock_moved");
    CHECK(said(clock({.moved_ns = second / 5, .moved_error_ns = second / 10})) == "");
    CHECK(said(clock({.moved_ns = second / 5, .moved_error_ns = second / 10 - 1})) == "invalid:clock_moved");
}

TEST_CASE("a node all of whose tasks do less than half of the others is named instead of a task of it") {
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

TEST_CASE("a task that took half as long again as the mean is named") {
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

TEST_CASE("a late start, a busy processor and busy neighbors are said") {
    const auto starts = [](std::int64_t ns) { return said([ns](Known& k) { k.totals.rows[1].start_ns = ns; }); };
    CHECK(starts(second / 2) == "");
    CHECK(starts(second / 2 + 1) == "info:late_start");
    const auto busy = [](std::uint64_t user, std::uint64_t system, int cpus, int nodes, bool stores) {
        return said([=](Known& k) {
            for (TaskRow& row : k.totals.rows) {
                row.user_ns = user;
                row.system_ns = system;
            }
            k.about.cpus = cpus;
            k.about.nodes = nodes;
            k.about.stores_data = stores;
        });
    };
    // Four tasks can use four cores at most, or as many as there are.
    CHECK(busy(4 * second, 5 * second, 8, 1, true) == "");
    CHECK(busy(4 * second, 5 * second + 1, 8, 1, true) == "info:cpu_bound");
    CHECK(busy(4 * second, 5 * second + 1, 8, 1, false) == "");
    CHECK(busy(2 * second, 2 * second, 2, 1, true) == "");
    CHECK(busy(2 * second, 3 * second, 2, 1, true) == "info:cpu_bound");
    CHECK(busy(2 * second, 3 * second, 2, 2, true) == "");
    CHECK(said([](Known& k) { k.about.other_cpu_s = 2.5; }) == "");
    CHECK(said([](Known& k) { k.about.other_cpu_s = 2.6; }) == "warning:noisy_node");
    CHECK(said([](Known& k) {
              k.about.other_cpu_s = 2.6;
              k.lasts(second / 2);
          }).find("noisy_node") == std::string::npos);
}

TEST_CASE("what is said of the data itself") {
    const auto blocks = [](std::uint64_t disk, double compressible, double duplicates) {
        return said([=](Known& k) {
            k.about.file_bytes = 1000;
            k.about.disk_bytes = disk;
            k.phase.data.payload.compressible = compressible;
            k.phase.data.payload.duplicates = duplicates;
        });
    };
    CHECK(blocks(900, 0, 0) == "");
    CHECK(blocks(899, 0, 0) == "warning:fewer_blocks");
    CHECK(blocks(100, 0.5, 0) == "");
    CHECK(blocks(100, 0, 0.5) == "");
    CHECK(said([](Known& k) {
              k.about.file_bytes = 1000;
              k.phase.data.payload.kind = sonde::plan::PayloadKind::zero;
          }) == "");
    CHECK(said([](Known& k) { k.totals.short_operations = 1; }) == "info:short_operations");
    CHECK(said([](Known& k) {
              k.about.verify_asked = true;
              k.totals.checked_bytes = 4 * gib;
          }) == "");
    const auto all = found([](Known& k) {
        k.about.verify_asked = true;
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

TEST_CASE("the gravest comes first") {
    CHECK(said([](Known& k) {
              k.about.clock_drift_ns = second;
              k.about.other_cpu_s = 9;
              k.totals.short_operations = 1;
              k.totals.planned_operations = 9999;
          }) == "invalid:clock warning:noisy_node info:coverage info:short_operations");
}
