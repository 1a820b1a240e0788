// SPDX-License-Identifier: Apache-2.0
// Tests when a report advises a change.
#include "files/report.hpp"

#include "captured_reports.hpp"

#include <doctest/doctest.h>
#include <string>

using namespace under_test;

namespace {

/// Returns the sentence after the figures; empty if there is none.
std::string advice(const Statistics& counted, std::uint32_t prefetch = 1, bool shared = false) {
    ReportedFile report;
    report.file->statistics = counted;
    report.file->pages.prefetch = prefetch;
    report.file->is_shared = shared;
    report.rule.verbose = false;
    buffer::report_file(*report.file);
    const std::string lines = report.captured.lines();
    const std::size_t position = lines.find("\"advice\":\"");
    return position == std::string::npos ? ""
                                         : lines.substr(position + 10, lines.find('"', position + 10) - position - 10);
}

}  // namespace

TEST_CASE("report has no advice for an efficiently buffered file") {
    CHECK(advice(hundred_reads()) == "");
}

TEST_CASE("each advice appears beyond its limit and not at it") {
    const auto changed = [](auto change, std::uint32_t prefetch = 1, bool shared = false) {
        Statistics counted = hundred_reads();
        change(counted);
        return advice(counted, prefetch, shared);
    };
    const auto pieces = [&](std::uint64_t calls, std::uint64_t below, bool shared = true) {
        return changed(
            [=](Statistics& statistics) {
                statistics.write.calls = calls;
                statistics.write.storage_calls = below;
            },
            1, shared);
    };
    CHECK(pieces(65, 33).starts_with("The ranks' pieces interleave"));
    CHECK(pieces(66, 33) == "");
    CHECK(pieces(64, 60) == "");
    CHECK(pieces(65, 33, false) == "");
    const auto interrupted = [&](std::uint64_t times) {
        return changed([=](Statistics& statistics) { statistics.interruptions = times; });
    };
    CHECK(interrupted(25) == "");
    CHECK(interrupted(26).starts_with("Calls that need the file as it is"));
    CHECK(changed([](Statistics& statistics) {
              statistics.read.calls = 40;
              statistics.read.consecutive = 0;
              statistics.interruptions = 16;
          }) == "");
    const auto hint_after_bypassing = [&](std::uint64_t times, std::uint64_t consecutive) {
        return changed([=](Statistics& statistics) {
            statistics.read.bypassed = times;
            statistics.read.consecutive = consecutive;
        });
    };
    CHECK(hint_after_bypassing(50, 50) == "");
    CHECK(hint_after_bypassing(51, 25).starts_with("Storage answers these calls as quickly"));
    CHECK(hint_after_bypassing(51, 24) == "");
    const auto scattered = [&](std::uint64_t sleeps, std::uint64_t went_past, std::uint64_t hits) {
        return changed([=](Statistics& statistics) {
            statistics.suspensions = sleeps;
            statistics.read.bypassed = went_past;
            statistics.read.hits = hits;
            statistics.read.consecutive = 0;
        });
    };
    CHECK(scattered(3, 0, 24).starts_with("The accesses are scattered"));
    CHECK(scattered(1, 1, 24).starts_with("The accesses are scattered"));
    CHECK(scattered(3, 0, 25) == "");
    CHECK(scattered(2, 0, 24) == "");
    CHECK(scattered(0, 1, 24) == "");
    const auto unused = [&](std::uint64_t started, std::uint64_t not_used) {
        return changed([=](Statistics& statistics) {
            statistics.read_aheads_started = started;
            statistics.read_aheads_unused = not_used;
        });
    };
    CHECK(unused(8, 5).starts_with("Most of what was read ahead was not used"));
    CHECK(unused(8, 4) == "");
    CHECK(unused(7, 7) == "");
    const auto in_sequence = [&](std::uint64_t calls, std::uint64_t consecutive, std::uint32_t prefetch) {
        return changed(
            [=](Statistics& statistics) {
                statistics.read.calls = calls;
                statistics.read.consecutive = consecutive;
            },
            prefetch);
    };
    CHECK(in_sequence(65, 33, 0).starts_with("It is read in sequence"));
    CHECK(in_sequence(66, 33, 0) == "");
    CHECK(in_sequence(64, 64, 0) == "");
    CHECK(in_sequence(65, 33, 1) == "");
    CHECK(changed([](Statistics& statistics) {
              statistics.read.bytes = 100ULL << 20U;
          }).starts_with("The program's own calls are as large"));
    CHECK(changed([](Statistics& statistics) { statistics.read.bytes = (100ULL << 20U) - 1; }) == "");
}
