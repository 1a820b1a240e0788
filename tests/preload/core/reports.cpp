// SPDX-License-Identifier: Apache-2.0
// Tests the exact text of reports on a file: for people, as JSON lines.
#include "files/report.hpp"

#include "buffered.hpp"
#include "captured_reports.hpp"
#include "model/state.hpp"
#include "system/clock.hpp"

#include <doctest/doctest.h>
#include <cstring>
#include <memory>
#include <string>

using namespace under_test;
using buffer::File;
using buffer::state;
using buffer::Statistics;

TEST_CASE("writes_have_a_separate_report_line") {
    ReportedFile report;
    report.file->statistics.write = report.file->statistics.read;
    report.file->statistics.read = {};
    report.file->statistics.write.bypassed = 7;
    report.file->release_reason = "why not";
    std::string line = line_of_reads;
    line.replace(2, 5, "write");
    CHECK(report.text() ==
          "sonde: x  (*: 4 buffers of 1048576 bytes)\n" + line +
              "         of these 7 calls went past the buffer, which stood aside because it did not pay: their places "
              "and times are not known\n"
              "  was open for ? s, waited 0.000 s; read ahead 0, used 0; written behind 0; seeks 4, syncs 0, "
              "interrupted 0\n"
              "  90 calls saved; whether that was faster is not known, because no small call went to storage: time a "
              "run without\n  no longer buffered: why not\n");
}

TEST_CASE("report_names_losses") {
    const auto gain_of = [](auto change, std::uint64_t call_ns = 5'000'000) {
        ReportedFile report;
        change(report.file->statistics);
        report.file->profitability.small_call_ns = call_ns;
        const std::string all = report.text();
        return all.substr(all.find("interrupted 0\n") + 14);
    };
    CHECK(gain_of([](Statistics& statistics) { statistics.read.storage_bytes = 20'000'003; }).find("calls saved") !=
          std::string::npos);
    CHECK(gain_of([](Statistics& statistics) { statistics.read.storage_bytes = 20'000'004; }) ==
          "  storage moved 4 times the bytes that the program asked for: most likely slower than without the buffer\n");
    CHECK(gain_of([](Statistics& statistics) { statistics.read.storage_calls = 100; }) ==
          "  no call was saved: as fast as without the buffer, at best\n");
    CHECK(gain_of([](Statistics& statistics) { statistics.read.storage_calls = 99; }).starts_with("  1 calls saved"));
    CHECK(gain_of([](Statistics& statistics) { statistics.wait_ns = 450'000'001; }) ==
          "  90 calls saved, of 5000.000 us each: about 0.450 s, less what copying costs; but more than that was spent "
          "waiting: slower than without\n");
    CHECK(gain_of([](Statistics& statistics) { statistics.wait_ns = 450'000'000; }).find("waiting") ==
          std::string::npos);
    CHECK(gain_of([](Statistics& statistics) { statistics.read.calls = 15; }) == "");  // too few to say anything
    CHECK(gain_of([](Statistics& statistics) { statistics.read.calls = 16; }) != "");
}

TEST_CASE("report_json_states_every_figure") {
    ReportedFile report;
    Statistics& counted = report.file->statistics;
    counted.wait_ns = 250'000'000;
    counted.syncs = 5;
    counted.read_aheads_started = 6;
    counted.read_aheads_used = 7;
    counted.write_behinds_started = 8;
    counted.interruptions = 9;
    counted.suspensions = 10;
    counted.write.bypassed = 11;
    report.file->release_reason = "why \"not\"";
    report.file->last_guard = buffer::Guard::Lease;
    report.text();
    CHECK(report.captured.lines() ==
          "{\"type\":\"buffer\",\"path\":\"x\",\"pattern\":\"*\",\"page_bytes\":1048576,\"pages\":4,\"guard\":"
          "\"lease\",\"open_s\":?,"
          "\"wait_s\":0.250000000,\"seeks\":4,\"syncs\":5,\"ahead_started\":6,\"ahead_used\":7,\"behind_started\":8,"
          "\"interrupted\":9,\"suspensions\":10,\"release_reason\":\"why \\\"not\\\"\","
          "\"read\":{\"calls\":100,\"bytes\":5000000,\"storage_calls\":10,\"storage_bytes\":6000000,\"storage_s\":"
          "1.500000000,"
          "\"hits\":90,\"consecutive\":99,\"bypassed\":0,\"unaligned\":3,\"sizes\":[0,0,0,100,0,0,0,0,0,0]},"
          "\"write\":{\"calls\":0,\"bytes\":0,\"storage_calls\":0,\"storage_bytes\":0,\"storage_s\":0.000000000,"
          "\"hits\":0,"
          "\"consecutive\":0,\"bypassed\":11,\"unaligned\":0,\"sizes\":[0,0,0,0,0,0,0,0,0,0]}}\n");
}

TEST_CASE("report_states_the_guard_of_the_file") {
    const auto sentence = [](buffer::Guard guard) {
        ReportedFile report;
        report.file->last_guard = guard;
        const std::string text = report.text();
        const std::size_t position = text.find("  guarded by ");
        return position == std::string::npos
                   ? ""
                   : text.substr(position + 13, text.find_first_of(":,", position) - position - 13);
    };
    CHECK(sentence(buffer::Guard::None) == "");
    CHECK(sentence(buffer::Guard::Lease) == "a lease");
    CHECK(sentence(buffer::Guard::NodeTable) == "the table of this node");
    CHECK(sentence(buffer::Guard::UserWord) == "your word alone");
}

TEST_CASE("file_without_calls_is_reported_only_with_reason") {
    ReportedFile report;
    report.file->statistics = {};
    CHECK(report.text() == "");
    report.file->release_reason = "gone";
    report.file->is_inherited = true;
    CHECK(report.text() == "");
    report.file->is_inherited = false;
    CHECK(report.text().find("  no longer buffered: gone\n") != std::string::npos);
}

TEST_CASE("report_names_buffers_work_and_release_reason") {
    ReportedFile report;
    report.file->statistics.wait_ns = 20'000'000;
    report.file->statistics.read_aheads_started = 6;
    report.file->statistics.read_aheads_used = 5;
    report.file->statistics.write_behinds_started = 8;
    report.file->statistics.syncs = 2;
    report.file->statistics.interruptions = 3;
    report.file->profitability.small_call_ns = 5'000'000;
    report.file->release_reason = "a child process shares it";
    CHECK(report.text() == std::string("sonde: x  (*: 4 buffers of 1048576 bytes)\n") + line_of_reads +
                               "  was open for ? s, waited 0.020 s; read ahead 6, used 5; written behind 8; seeks 4, "
                               "syncs 2, interrupted 3\n"
                               "  90 calls saved, of 5000.000 us each: about 0.450 s, less what copying costs\n"
                               "  no longer buffered: a child process shares it\n");
}

TEST_CASE("report gives chosen settings with the reason") {
    {
        ReportedFile report;
        report.rule.automatic = true;
        report.file->choice = {
            .is_profitable = true, .page_size = 2048, .pages = 16, .prefetch = 2, .reason = "of this"};
        CHECK(report.text().find(
                  "  chosen by its first 200 calls: 16 buffers of 2048 bytes, 2 read ahead, because of this\n") !=
              std::string::npos);
        CHECK(report.captured.lines().find(",\"auto\":{\"buffered\":true,\"prefetch\":2,\"why\":\"of this\"}") !=
              std::string::npos);
    }
    ReportedFile watched;
    watched.rule.automatic = true;
    CHECK(watched.text().find("  not buffered: it has too few calls to be worth a buffer\n") != std::string::npos);
    CHECK(watched.captured.lines().find(",\"auto\":{\"buffered\":false,\"prefetch\":0,") != std::string::npos);
}

TEST_CASE("files_below_16_calls_share_one_line") {
    ReportedFile told_file;
    CapturedReports& captured = told_file.captured;
    told_file.rule.is_brief = true;
    std::strcpy(told_file.file->path, "/data/x");
    Statistics few;
    few.read.calls = 10;
    few.write.calls = 5;
    few.read.bytes = 3000;
    few.write.bytes = 4000;
    const auto report = [&](const Statistics& counted, const char* stopped) {
        told_file.file->statistics = counted;
        told_file.file->release_reason = stopped;
        buffer::report_file(*told_file.file);
    };
    report(few, nullptr);
    report(few, nullptr);
    CHECK(captured.text() == "");
    few.read.calls = 1;
    few.write.calls = 0;
    report(few, "it was mapped");
    CHECK(captured.text() == "sonde: /data/x  left as it was after 1 call: it was mapped\n");
    few.write.calls = 1;
    report(few, "it was mapped");
    CHECK(captured.text().find("after 2 calls: it was mapped\n") != std::string::npos);
    const std::size_t before = captured.text().size();
    few.read.calls = 16;
    few.write.calls = 0;
    report(few, nullptr);
    CHECK(captured.text().substr(before).find("program 16 calls") != std::string::npos);
    const std::size_t end = captured.text().size();
    buffer::report_at_end();
    CHECK(captured.text().substr(end) ==
          "sonde: 2 other files, each of fewer than 16 calls: together 30 calls, 0.014 MB (the option verbose in "
          "IOBUF_PARAMS tells of each)\n");
    const std::size_t length_before = captured.text().size();
    buffer::report_at_end();  // once a process
    CHECK(captured.text().size() == length_before);
}

TEST_CASE("unmatched_pattern_is_reported_if_other_files_opened") {
    for (const bool strangers : {false, true}) {
        for (const bool verbose : {false, true}) {
            CapturedReports captured;
            settings::Settings& settings = use(verbose ? "*.dat,*.log:verbose" : "*.dat,*.log");
            state.report_fd = open(captured.text_file.c_str(), O_WRONLY | O_APPEND);
            settings.rules[1].match_count = 1;
            state.has_uncovered_files = strangers;
            buffer::report_at_end();
            CHECK(captured.text() ==
                  (strangers && verbose ? "sonde: the pattern \"*.dat\" matched no file of this program.\n" : ""));
        }
    }
}

TEST_CASE("few_calls_use_singular_and_open_files_report_once") {
    ReportedFile told_file;
    CapturedReports& captured = told_file.captured;
    told_file.rule.is_brief = true;
    told_file.file->statistics = {};
    told_file.file->statistics.read.calls = 15;
    told_file.file->statistics.read.bytes = 1'000'000;
    buffer::report_file(*told_file.file);
    const Folder folder;
    const int fd = open((folder.path + "/open").c_str(), O_RDWR | O_CREAT, 0644);
    state.settings->rules[0].verbose = true;
    buffer::adopt_descriptor({.fd = fd, .flags = O_RDWR, .path = "open"});
    std::string data(20'000, 'x');
    for (int i = 0; i < 20; ++i) {
        REQUIRE(write_at(fd, data.data(), 1000, i * 1000) == 1000);
    }
    buffer::report_at_end();
    const std::string text = captured.text();
    CHECK(text.find("/open  (*: 4 buffers of 1048576 bytes)\n  write  program 20 calls, 0.020 MB") !=
          std::string::npos);
    CHECK(text.find("sonde: 1 other file of fewer than 16 calls: together 15 calls, 1.000 MB (the option verbose") !=
          std::string::npos);
    CHECK(file_of(fd).statistics.write.calls == 0);
    CHECK(close_buffered(fd) == 0);
    CHECK(captured.text() == text);
}
