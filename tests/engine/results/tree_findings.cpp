// SPDX-License-Identifier: Apache-2.0
// Findings in phases on names, each just below and above its limit, with numbers computed by hand.
#include "results/tree_findings.hpp"
#include "named_findings.hpp"

#include <doctest/doctest.h>
#include <functional>
#include <string>
#include <vector>

using sonde::plan::Op;
using sonde::results::compute_rate_decline;
using sonde::results::find_tree_findings;
using sonde::results::PhaseCircumstances;
using sonde::results::TaskRow;
using sonde::results::Totals;

namespace {

constexpr std::int64_t millisecond = 1'000'000;

/// Creates on ext4 by two tasks: nothing in the first slice of 0.1 s, 20 slices of `early` items, 20 of `late` ones.
struct CreatePhase {
    sonde::plan::Phase phase;
    Totals totals;
    PhaseCircumstances circumstances;

    explicit CreatePhase(std::uint64_t early = 300, std::uint64_t late = 300) {
        phase.id = "make";
        phase.op = Op::create;
        phase.meta.emplace();
        circumstances.file_system = "ext4";
        totals.slice_ns = 100 * millisecond;
        totals.sums_of_streams[0].slices.resize(41);
        for (std::size_t i = 1; i < 41; ++i) {
            totals.sums_of_streams[0].slices[i].operations = i <= 20 ? early : late;
        }
        totals.file_operations = 20 * (early + late);
        totals.parts_of_work[sonde::meters::part_transfer].add(100 * millisecond, 4100 * millisecond);
        totals.rows.resize(2);
        for (TaskRow& row : totals.rows) {
            row.transfer_ns = 1000 * millisecond;
        }
    }
    /// Each create takes so much time in the kernel, all of the tasks' time together so many seconds.
    void costs(std::uint64_t operations, double system_us, double task_seconds) {
        totals.file_operations = operations;
        for (TaskRow& row : totals.rows) {
            row.system_ns = static_cast<std::uint64_t>(system_us * 1000) * operations / 2;
            row.transfer_ns = static_cast<std::int64_t>(task_seconds * 5e8);
        }
    }
    std::vector<nlohmann::ordered_json> list_findings() {
        circumstances.phase = &phase;
        return find_tree_findings(totals, circumstances);
    }
    std::string list_finding_names() { return sonde::tests::names_of(list_findings()); }
};

std::string said(const std::function<void(CreatePhase&)>& change) {
    CreatePhase creates;
    change(creates);
    return creates.list_finding_names();
}

}  // namespace

TEST_CASE("rate_decline_of_hand_computed_example") {
    const CreatePhase creates(300, 200);
    for (const Op op : {Op::create, Op::remove_items}) {
        const auto decline = compute_rate_decline(creates.totals, op);
        REQUIRE(decline.has_value());
        CHECK(decline->first_ops_per_s == doctest::Approx(3000));
        CHECK(decline->last_ops_per_s == doctest::Approx(2000));
        CHECK(decline->ratio() == doctest::Approx(2.0 / 3));
    }
    CHECK_FALSE(compute_rate_decline(creates.totals, Op::stat_items).has_value());
}

TEST_CASE("rate_decline_from_zero_has_ratio_zero") {
    CHECK(sonde::results::RateDecline{0, 5}.ratio() == 0);
    CHECK(sonde::results::RateDecline{0.5, 1}.ratio() == 2);
}

TEST_CASE("rate_decline_needs_1000_items_and_20_slices") {
    CreatePhase creates(50, 25);
    creates.totals.file_operations = 1000;
    CHECK(compute_rate_decline(creates.totals, Op::create).has_value());
    creates.totals.file_operations = 999;
    CHECK_FALSE(compute_rate_decline(creates.totals, Op::create).has_value());
    creates.totals.file_operations = 1000;
    creates.totals.sums_of_streams[0].slices.resize(20);
    creates.totals.parts_of_work = {};
    creates.totals.parts_of_work[sonde::meters::part_transfer].add(100 * millisecond, 2000 * millisecond);
    CHECK(compute_rate_decline(creates.totals, Op::create).has_value());
    creates.totals.sums_of_streams[0].slices.resize(19);
    CHECK_FALSE(compute_rate_decline(creates.totals, Op::create).has_value());
}

TEST_CASE("rate_decline_needs_measurable_tenths") {
    CreatePhase creates(300, 200);
    creates.totals.parts_of_work[sonde::meters::part_transfer] = {434 * millisecond, 4100 * millisecond,
                                                                  0};  // the first tenth ends at 433.3 ms
    CHECK_FALSE(compute_rate_decline(creates.totals, Op::create).has_value());
    creates.totals.parts_of_work[sonde::meters::part_transfer] = {100 * millisecond, 3600 * millisecond,
                                                                  0};  // the last begins at 3,600 ms
    CHECK_FALSE(compute_rate_decline(creates.totals, Op::create).has_value());
}

TEST_CASE("rate_decline_below_0_7_of_10000_items_is_detected") {
    CHECK(CreatePhase(300, 300).list_finding_names() == "");
    CHECK(CreatePhase(300, 216).list_finding_names() == "");
    CHECK(CreatePhase(300, 204).list_finding_names() == "warning:droop");
    CHECK(CreatePhase(300, 200).list_finding_names() == "warning:droop");  // 10,000 items exactly
    CHECK(CreatePhase(299, 200).list_finding_names() == "");
    const auto all = CreatePhase(300, 200).list_findings();
    REQUIRE(all.size() == 1);
    CHECK(all[0].at("phase") == "make");
    CHECK(all[0].at("text") == "the rate fell from 3000/s for the first tenth of the items to 2000/s for the last");
    CHECK(all[0].at("evidence").at("first_ops_per_s") == doctest::Approx(3000));
    CHECK(all[0].at("evidence").at("last_ops_per_s") == doctest::Approx(2000));
    CHECK(all[0].at("evidence").at("ratio") == doctest::Approx(2.0 / 3));
}

TEST_CASE("slow_creates_on_ext4_are_recent_deletes") {
    const auto costs = [](std::uint64_t operations, double system_us, double task_seconds) {
        return said([&](CreatePhase& creates) { creates.costs(operations, system_us, task_seconds); });
    };
    CHECK(costs(2000, 50, 0.5) == "warning:recent_deletes");  // 0.1 s in the kernel of 0.5 s
    CHECK(costs(2000, 49, 0.4) == "");
    CHECK(costs(2000, 50, 0.502) == "");
    CHECK(costs(1000, 200, 0.9) == "warning:recent_deletes");
    CHECK(costs(998, 200, 0.9) == "");
    const auto not_if = [](const std::function<void(CreatePhase&)>& change) {
        return said([&](CreatePhase& creates) {
            creates.costs(2000, 200, 0.9);
            change(creates);
        });
    };
    CHECK(not_if([](CreatePhase&) {}) == "warning:recent_deletes");
    CHECK(not_if([](CreatePhase& creates) { creates.phase.op = Op::remove_items; }) == "");
    CHECK(not_if([](CreatePhase& creates) { creates.circumstances.stores_data = false; }) == "");
    CHECK(not_if([](CreatePhase& creates) { creates.circumstances.file_system = "xfs"; }) == "");
    CHECK(not_if([](CreatePhase& creates) { creates.phase.meta->fsync = true; }) == "");
}

TEST_CASE("recent_deletes_name_phase_and_cost") {
    CreatePhase creates;
    creates.costs(2000, 200, 0.9);
    auto all = creates.list_findings();
    REQUIRE(all.size() == 1);
    CHECK(all[0].at("text") ==
          "each create took 200 us of CPU time in the kernel, as after a mass delete in the last minutes: ext4 passes "
          "over recently deleted inodes one by one, so this rate is not that of a file system at rest");
    CHECK(all[0].at("evidence").at("system_us_per_create") == doctest::Approx(200));
    CHECK(all[0].at("evidence").at("system_s") == doctest::Approx(0.4));
    CHECK(all[0].at("evidence").at("task_seconds") == doctest::Approx(0.9));
    creates.circumstances.earlier_removal = "clear";
    all = creates.list_findings();
    CHECK(all[0].at("text").get<std::string>().find("kernel, after phase clear removed files: ext4") !=
          std::string::npos);
    CHECK(all[0].at("evidence").at("removed_before") == "clear");
}

TEST_CASE("names_created_on_this_node_may_come_from_name_cache") {
    const auto list_findings_of_stat = [](const std::function<void(CreatePhase&)>& change) {
        return said([&](CreatePhase& creates) {
            creates.phase.op = Op::stat_items;
            change(creates);
        });
    };
    CHECK(list_findings_of_stat([](CreatePhase&) {}) == "info:names_cached");
    CHECK(list_findings_of_stat([](CreatePhase& creates) { creates.totals.file_operations = 1; }) ==
          "info:names_cached");
    CHECK(list_findings_of_stat([](CreatePhase& creates) { creates.totals.file_operations = 0; }) == "");
    CHECK(list_findings_of_stat([](CreatePhase& creates) { creates.circumstances.stores_data = false; }) == "");
    CHECK(list_findings_of_stat([](CreatePhase& creates) { creates.circumstances.memory_backed = true; }) == "");
    CHECK(list_findings_of_stat([](CreatePhase& creates) { creates.circumstances.dropped_metadata_cache = true; }) ==
          "");
    CHECK(list_findings_of_stat(
              [](CreatePhase& creates) { creates.circumstances.reads_names_of_other_nodes = true; }) == "");
    CHECK(list_findings_of_stat([](CreatePhase& creates) { creates.phase.op = Op::remove_items; }) == "");
}

TEST_CASE("treatment_without_name_cache_effect_is_reported") {
    const auto list_findings_after_treatment = [](const char* kind) {
        CreatePhase creates;
        creates.phase.op = Op::stat_items;
        creates.phase.before.resize(2);
        creates.phase.before[1].kind = kind;
        return creates.list_findings().at(0);
    };
    for (const char* kind : {"drop_page_cache", "remount"}) {
        CHECK(list_findings_after_treatment(kind).at("evidence").at("treated") == true);
        CHECK(list_findings_after_treatment(kind).at("text") ==
              "names and attributes that this node made may have come from its memory, which the treatment before did "
              "not empty on every node");
        CHECK(list_findings_after_treatment(kind).at("advice").get<std::string>().rfind("run as root", 0) == 0);
    }
    const auto other = list_findings_after_treatment("fadvise");
    CHECK(other.at("evidence").at("treated") == false);
    CHECK(other.at("text") == "names and attributes that this node made may have come from its memory");
    CHECK(other.at("advice").get<std::string>().rfind("drop the caches before", 0) == 0);
}
