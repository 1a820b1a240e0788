// SPDX-License-Identifier: Apache-2.0
// Findings about a phase, just within each limit and just beyond it.
#include "results/phase_findings.hpp"

#include "measured_phase.hpp"

#include <doctest/doctest.h>
#include <string>
#include <vector>

using sonde::results::find_phase_findings;
using sonde::results::TaskRow;
using sonde::tests::Change;
using sonde::tests::find_findings;
using sonde::tests::gib;
using sonde::tests::list_finding_ids;
using sonde::tests::MeasuredPhase;
using sonde::tests::read_buffered;
using sonde::tests::second;
using sonde::tests::write_buffered;

TEST_CASE("flawless_phase_has_no_findings") {
    CHECK(list_finding_ids([](MeasuredPhase&) {}) == "");
}

TEST_CASE("read_from_page_cache_is_detected") {
    const auto residency = [](double share, double allowed) {
        return list_finding_ids([share, allowed](MeasuredPhase& k) {
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
    CHECK(list_finding_ids([](MeasuredPhase& k) {
              read_buffered(k);
              k.circumstances.residency_known = false;
          }) == "info:cache_unknown");
    const auto all = find_findings([](MeasuredPhase& k) {
        read_buffered(k);
        k.circumstances.residency = 0.37;
    });
    REQUIRE(all.size() == 1);
    CHECK(all[0].at("text") == "37 % of the data was in this node's page cache before the phase: not a storage number");
    CHECK(all[0].at("phase") == "p");
    CHECK(all[0].at("evidence").at("residency") == 0.37);
    CHECK(all[0].at("evidence").at("allowed") == 0.01);
}

TEST_CASE("direct_transfer_above_device_request_is_detected") {
    const auto transfer = [](
                              std::uint64_t bytes, std::uint64_t maximum,
                              const Change& change = [](MeasuredPhase&) {}) {
        return find_findings([&](MeasuredPhase& k) {
            k.phase.data.access.transfer = bytes;
            k.circumstances.maximum_request = maximum;
            change(k);
        });
    };
    constexpr std::uint64_t mib = 1ULL << 20U;
    CHECK(transfer(mib, mib).empty());
    CHECK(transfer(16 * mib, 0).empty());
    CHECK(transfer(16 * mib, mib, [](MeasuredPhase& k) { k.circumstances.stores_data = false; }).empty());
    CHECK(transfer(16 * mib, mib, [](MeasuredPhase& k) {
              k.totals.operations[0] = k.totals.planned_operations = 0;
          }).empty());
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
    CHECK(list_finding_ids([](MeasuredPhase& k) { k.circumstances.residency = 0.9; }) == "");
    CHECK(list_finding_ids([](MeasuredPhase& k) {
              read_buffered(k);
              k.circumstances.residency = 0.9;
              k.circumstances.stores_data = false;
          }) == "");
    CHECK(list_finding_ids([](MeasuredPhase& k) {
              read_buffered(k);
              k.circumstances.residency = 0.9;
              k.phase.meta.emplace();
          }) == "");
    CHECK(list_finding_ids([](MeasuredPhase& k) {
              read_buffered(k);
              k.circumstances.residency = 0.9;
              k.circumstances.memory_backed = true;
          }) == "info:memory_backed");
}

TEST_CASE("repeated_pattern_within_memory_is_cache") {
    const auto read = [](std::uint64_t bytes, std::uint64_t memory, int nodes) {
        return list_finding_ids([bytes, memory, nodes](MeasuredPhase& k) {
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
    const auto all = find_findings([](MeasuredPhase& k) {
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
        CHECK(list_finding_ids([bytes](MeasuredPhase& k) {
                  write_buffered(k);
                  k.totals.bytes[1] = bytes;
              }) == "warning:cache_suspect");
    }
    CHECK(list_finding_ids([](MeasuredPhase& k) {
              write_buffered(k);
              k.phase.data.io.fsync = sonde::plan::Fsync::end;
          }) == "");
    CHECK(list_finding_ids([](MeasuredPhase& k) {
              write_buffered(k);
              k.phase.data.io.sync_flag = sonde::plan::SyncFlag::o_dsync;
          }) == "");
    CHECK(list_finding_ids([](MeasuredPhase& k) {
              write_buffered(k);
              k.totals.bytes[1] = 0;
          }) == "");
}

TEST_CASE("short_phase_is_detected_by_default_or_plan_limit") {
    CHECK(list_finding_ids([](MeasuredPhase& k) { k.set_duration(second); }).find("too_short") == std::string::npos);
    CHECK(list_finding_ids([](MeasuredPhase& k) { k.set_duration(second - 1); }).find("info:too_short") !=
          std::string::npos);
    CHECK(list_finding_ids([](MeasuredPhase& k) { k.phase.valid.min_time = 10 * second; }) == "");
    CHECK(list_finding_ids([](MeasuredPhase& k) { k.phase.valid.min_time = 10 * second + 1; }) == "warning:too_short");
}

TEST_CASE("undone_operations_without_time_limit_are_a_finding") {
    const auto undone = [](const char* stopped_by) {
        return list_finding_ids([stopped_by](MeasuredPhase& k) {
            k.totals.planned_operations = 5000;
            k.facts.stopped_by = stopped_by;
        });
    };
    CHECK(undone("items") == "info:coverage");
    CHECK(undone("stonewall") == "");
    CHECK(undone("time") == "");
    const auto all = find_findings([](MeasuredPhase& k) {
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
    CHECK(list_finding_ids([](MeasuredPhase& k) { k.circumstances.clock_drift_ns = second / 100; }) == "");
    CHECK(list_finding_ids([](MeasuredPhase& k) { k.circumstances.clock_drift_ns = second / 100 + 1; }) ==
          "invalid:clock");
    CHECK(list_finding_ids([](MeasuredPhase& k) { k.circumstances.clock_drift_ns = -second / 50; }) == "invalid:clock");
}

TEST_CASE("node_clock_misalignment_and_drift_are_detected") {
    const auto clock = [](sonde::results::NodeClock second_node) {
        second_node.node = 1;
        return [second_node](MeasuredPhase& k) { k.facts.clocks = {{}, second_node}; };
    };
    CHECK(list_finding_ids(clock({.offset_ns = 7'000 * second})) == "");
    CHECK(list_finding_ids(clock({.error_ns = second / 10})) == "");
    CHECK(list_finding_ids(clock({.error_ns = second / 10 + 1})) == "warning:clock_alignment");
    CHECK(list_finding_ids(clock({.drift_ns = second / 10})) == "");
    CHECK(list_finding_ids(clock({.drift_ns = -second / 10 - 1})) == "invalid:clock_drift");
    CHECK(list_finding_ids(clock({.drift_ns = second / 5, .drift_error_ns = second / 10})) == "");
    CHECK(list_finding_ids(clock({.drift_ns = second / 5, .drift_error_ns = second / 10 - 1})) ==
          "invalid:clock_drift");
}

TEST_CASE("findings_about_data") {
    const auto blocks = [](std::uint64_t disk, double compressible, double duplicates) {
        return list_finding_ids([=](MeasuredPhase& k) {
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
    CHECK(list_finding_ids([](MeasuredPhase& k) {
              k.circumstances.file_bytes = 1000;
              k.phase.data.payload.kind = sonde::plan::PayloadKind::zero;
          }) == "");
    CHECK(list_finding_ids([](MeasuredPhase& k) { k.totals.short_operations = 1; }) == "info:short_operations");
    CHECK(list_finding_ids([](MeasuredPhase& k) { k.circumstances.hides_write_errors = true; }) == "");
    CHECK(list_finding_ids([](MeasuredPhase& k) {
              k.circumstances.hides_write_errors = true;
              k.totals.bytes[1] = gib;
          }) == "warning:write_errors_unknown");
    CHECK(list_finding_ids([](MeasuredPhase& k) {
              k.circumstances.verification_requested = true;
              k.totals.checked_bytes = 4 * gib;
          }) == "");
    const auto all = find_findings([](MeasuredPhase& k) {
        k.circumstances.verification_requested = true;
        k.totals.checked_bytes = 3 * gib;
    });
    REQUIRE(all.size() == 1);
    CHECK(all[0].at("id") == "not_verified");
    CHECK(all[0].at("text").get<std::string>().starts_with("25 % of the data was not verified"));
    CHECK(list_finding_ids([](MeasuredPhase& k) {
              k.totals.checked_bytes = 4 * gib;
              k.phase.data.io.queue_depth = 2;
          }) == "info:verify_disturbs");
}

TEST_CASE("most_severe_finding_comes_first") {
    CHECK(list_finding_ids([](MeasuredPhase& k) {
              k.circumstances.clock_drift_ns = second;
              k.circumstances.other_cores = 0.9;
              k.totals.short_operations = 1;
              k.totals.planned_operations = 9999;
          }) == "invalid:clock warning:noisy_node info:coverage info:short_operations");
}

TEST_CASE("sentences_have_figures_of_evidence") {
    using nlohmann::ordered_json;
    const auto only = [](const Change& change) {
        const auto all = find_findings(change);
        REQUIRE(all.size() == 1);
        return all[0];
    };
    const auto late = only([](MeasuredPhase& k) {
        k.totals.rows[1].start_ns = 2'500'000'000;
        k.circumstances.tasks_per_node = 4;
    });
    CHECK(late.at("text") == "the last task began 2.500 s after the first");
    CHECK(late.at("evidence") == ordered_json{{"latest_start_s", 2.5}, {"cpus", 8}, {"tasks_per_node", 4}});
    const auto busy = only([](MeasuredPhase& k) {
        for (TaskRow& row : k.totals.rows) {
            row.user_ns = 8 * second;
            row.system_ns = 2 * second;
        }
    });
    CHECK(busy.at("text") ==
          "the tasks used 100 % of the cores they could use: the CPU, not the storage, set the rate");
    CHECK(busy.at("evidence") == ordered_json{{"cores_used", 4.0}, {"cores", 4.0}});
    const auto noisy = only([](MeasuredPhase& k) { k.circumstances.other_cores = 3; });
    CHECK(noisy.at("text") == "other processes used 3.0 of the 8 cores of this node during the phase");
    CHECK(noisy.at("evidence") == ordered_json{{"other_cores", 3.0}, {"cpus", 8}, {"tasks_per_node", 4}});
    const auto brief = only([](MeasuredPhase& k) { k.phase.valid.min_time = 20 * second; });
    CHECK(brief.at("text") == "the phase took 10.000 s, less than 20 s: start and end weigh in the rate");
    CHECK(brief.at("evidence") == ordered_json{{"elapsed_s", 10.0}, {"wanted_s", 20.0}});
    const auto drift = only([](MeasuredPhase& k) { k.circumstances.clock_drift_ns = -second; });
    CHECK(drift.at("text") == "the time-stamp counter and CLOCK_MONOTONIC differ by 1 s over the phase");
    CHECK(drift.at("evidence") == ordered_json{{"drift_s", 1.0}, {"elapsed_s", 10.0}});
    const auto blocks = only([](MeasuredPhase& k) {
        k.circumstances.file_bytes = 1000;
        k.circumstances.disk_bytes = 250;
    });
    CHECK(blocks.at("text").get<std::string>().rfind("only 25 % of the written bytes occupy blocks", 0) == 0);
    CHECK(blocks.at("evidence") == ordered_json{{"disk_bytes", 250}, {"file_bytes", 1000}});
    const auto unsafe = only([](MeasuredPhase& k) { write_buffered(k); });
    CHECK(unsafe.at("evidence") == ordered_json{{"written_bytes", 4 * gib}, {"memory_bytes", 16 * gib}});
}

TEST_CASE("worst_aligned_and_most_drifting_clock_are_reported") {
    const auto clocks = [](std::vector<sonde::results::NodeClock> of_nodes) {
        return find_findings([&](MeasuredPhase& k) { k.facts.clocks = of_nodes; });
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
    MeasuredPhase timeless;
    timeless.circumstances.phase = &timeless.phase;
    timeless.totals.parts_of_work = {};
    timeless.facts.clocks = {{0, 0, second, second, 0}};
    for (const auto& finding : find_phase_findings(timeless.totals, timeless.facts, timeless.circumstances)) {
        CHECK(finding.at("id").get<std::string>().find("clock") == std::string::npos);
    }
}

TEST_CASE("limited_rate_is_attributed_to_limit_or_storage") {
    const auto limited = [](double iops, double rate) {
        return list_finding_ids([=](MeasuredPhase& k) {
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
        return list_finding_ids([=](MeasuredPhase& k) {
            k.totals.training.rated_accelerators = rated;
            k.totals.training.utilization_sum = utilization_sum;
        });
    };
    CHECK(train(4, 3.81) == "info:rate_limited");
    CHECK(train(4, 3.79) == "");
    CHECK(train(0, 0) == "");
}
