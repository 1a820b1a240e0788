// SPDX-License-Identifier: Apache-2.0
// Tests the exact text of reports on a file: for people, as JSON lines, and the advice.
#include "files/report.hpp"

#include "buffered.hpp"
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

namespace {

/// Redirects all reports to files of the test.
struct Heard {
    Folder folder;
    std::string text_file = folder.path + "/text";
    Heard() {
        use("*");
        state.report = open(text_file.c_str(), O_CREAT | O_WRONLY | O_APPEND, 0644);
        state.lines_folder = folder.path.c_str();
        state.few.files = state.few.calls = state.few.bytes = 0;
    }
    ~Heard() {
        close(state.report);
        if (state.lines >= 0) {
            buffer::unmark_own_descriptor(state.lines);
            close(state.lines);
        }
        state.report = state.lines = -1;
        state.lines_folder = nullptr;
        state.reported = false;
        state.others_unseen = false;
        state.strangers = false;
    }
    /// Returns the report with `?` in place of the time since the opening.
    static std::string timeless(std::string text) {
        for (const std::string mark : {"open for ", "open_s\":"}) {
            for (std::size_t position = text.find(mark); position != std::string::npos;
                 position = text.find(mark, position + 1)) {
                const std::size_t begin = position + mark.size();
                const std::size_t end = text.find_first_not_of("0123456789.", begin);
                text.replace(begin, end == std::string::npos ? end : end - begin, end != begin ? "?" : "");
            }
        }
        return text;
    }
    std::string text() const { return timeless(contents(text_file)); }
    std::string lines() const {
        return timeless(contents(folder.path + "/buffer-" + std::to_string(getpid()) + ".ndjson"));
    }
};

/// 100 reads of 50,000 bytes, of which ten reached storage in 1.5 s.
Statistics hundred_reads() {
    Statistics counted;
    counted.read.calls = 100;
    counted.read.bytes = 5'000'000;
    counted.read.storage_calls = 10;
    counted.read.storage_bytes = 6'000'000;
    counted.read.storage_ns = 1'500'000'000;
    counted.read.hits = 90;
    counted.read.consecutive = 99;
    counted.read.unaligned = 3;
    counted.read.sizes[3] = 100;
    counted.seeks = 4;
    return counted;
}

const char* const line_of_reads =
    "  read   program 100 calls, 5.000 MB -> storage 10 calls, 6.000 MB in 1.500 s; 90 calls answered from the buffer, "
    "99 consecutive, 3 unaligned\n";

/// A rule for all files whose report has every detail.
settings::Rule rule_of_all() {
    settings::Rule rule;
    rule.pattern[0] = '*';
    rule.verbose = true;
    return rule;
}

/// Returns the report of an unopened file with 4 pages of 1 MiB and these statistics.
struct Told {
    Heard heard;
    settings::Rule rule = rule_of_all();
    std::unique_ptr<File> file = std::make_unique<File>();
    Told() {
        file->rule = &rule;
        file->pages.page_size = 1 << 20;
        file->pages.limit = 4;
        file->pages.prefetch = 1;
        file->opened_ns = system::now_ns();
        file->path[0] = 'x';
        file->statistics = hundred_reads();
    }
    std::string text() {
        buffer::report_file(*file);
        return heard.text();
    }
};

/// Returns the sentence after the figures; empty if there is none.
std::string advice(const Statistics& counted, std::uint32_t prefetch = 1, bool shared = false) {
    Told report;
    report.file->statistics = counted;
    report.file->pages.prefetch = prefetch;
    report.file->shared = shared;
    report.rule.verbose = false;
    buffer::report_file(*report.file);
    const std::string lines = report.heard.lines();
    const std::size_t position = lines.find("\"advice\":\"");
    return position == std::string::npos ? ""
                                         : lines.substr(position + 10, lines.find('"', position + 10) - position - 10);
}

bool begins(const std::string& text, const char* with) {
    return text.rfind(with, 0) == 0;
}

}  // namespace

TEST_CASE("writes_have_their_own_report_line") {
    Told report;
    report.file->statistics.write = report.file->statistics.read;
    report.file->statistics.read = {};
    report.file->statistics.write.bypassed = 7;
    report.file->why_released = "why not";
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
        Told report;
        change(report.file->statistics);
        report.file->payoff.small_call_ns = call_ns;
        const std::string all = report.text();
        return all.substr(all.find("interrupted 0\n") + 14);
    };
    CHECK(gain_of([](Statistics& statistics) { statistics.read.storage_bytes = 20'000'003; }).find("calls saved") !=
          std::string::npos);
    CHECK(gain_of([](Statistics& statistics) { statistics.read.storage_bytes = 20'000'004; }) ==
          "  storage moved 4 times the bytes that the program asked for: most likely slower than without the buffer\n");
    CHECK(gain_of([](Statistics& statistics) { statistics.read.storage_calls = 100; }) ==
          "  no call was saved: as fast as without the buffer, at best\n");
    CHECK(begins(gain_of([](Statistics& statistics) { statistics.read.storage_calls = 99; }), "  1 calls saved"));
    CHECK(gain_of([](Statistics& statistics) { statistics.wait_ns = 450'000'001; }) ==
          "  90 calls saved, of 5000.000 us each: about 0.450 s, less what copying costs; but more than that was spent "
          "waiting: slower than without\n");
    CHECK(gain_of([](Statistics& statistics) { statistics.wait_ns = 450'000'000; }).find("waiting") ==
          std::string::npos);
    CHECK(gain_of([](Statistics& statistics) { statistics.read.calls = 15; }) == "");  // too few to say anything
    CHECK(gain_of([](Statistics& statistics) { statistics.read.calls = 16; }) != "");
}

TEST_CASE("report_json_states_every_figure") {
    Told report;
    Statistics& counted = report.file->statistics;
    counted.wait_ns = 250'000'000;
    counted.syncs = 5;
    counted.ahead_started = 6;
    counted.ahead_used = 7;
    counted.behind_started = 8;
    counted.interruptions = 9;
    counted.suspensions = 10;
    counted.write.bypassed = 11;
    report.file->why_released = "why \"not\"";
    report.file->last_guard = buffer::Guard::Lease;
    report.text();
    CHECK(report.heard.lines() ==
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

TEST_CASE("report_names_what_guards_the_file") {
    const auto sentence = [](buffer::Guard guard) {
        Told report;
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
    Told report;
    report.file->statistics = {};
    CHECK(report.text() == "");
    report.file->why_released = "gone";
    report.file->inherited = true;
    CHECK(report.text() == "");
    report.file->inherited = false;
    CHECK(report.text().find("  no longer buffered: gone\n") != std::string::npos);
}

TEST_CASE("report_names_buffers_work_and_release_reason") {
    Told report;
    report.file->statistics.wait_ns = 20'000'000;
    report.file->statistics.ahead_started = 6;
    report.file->statistics.ahead_used = 5;
    report.file->statistics.behind_started = 8;
    report.file->statistics.syncs = 2;
    report.file->statistics.interruptions = 3;
    report.file->payoff.small_call_ns = 5'000'000;
    report.file->why_released = "a child process shares it";
    CHECK(report.text() == std::string("sonde: x  (*: 4 buffers of 1048576 bytes)\n") + line_of_reads +
                               "  was open for ? s, waited 0.020 s; read ahead 6, used 5; written behind 8; seeks 4, "
                               "syncs 2, interrupted 3\n"
                               "  90 calls saved, of 5000.000 us each: about 0.450 s, less what copying costs\n"
                               "  no longer buffered: a child process shares it\n");
}

TEST_CASE("what was chosen for a file is told with the reason") {
    {
        Told report;
        report.rule.automatic = true;
        report.file->choice = {.pays = true, .page_size = 2048, .pages = 16, .ahead = 2, .why = "of this"};
        CHECK(report.text().find(
                  "  chosen by its first 200 calls: 16 buffers of 2048 bytes, 2 read ahead, because of this\n") !=
              std::string::npos);
        CHECK(report.heard.lines().find(",\"auto\":{\"buffered\":true,\"prefetch\":2,\"why\":\"of this\"}") !=
              std::string::npos);
    }
    Told watched;
    watched.rule.automatic = true;
    CHECK(watched.text().find("  not buffered: it has too few calls to be worth a buffer\n") != std::string::npos);
    CHECK(watched.heard.lines().find(",\"auto\":{\"buffered\":false,\"prefetch\":0,") != std::string::npos);
}

TEST_CASE("there is nothing to advise where the buffer does what it can") {
    CHECK(advice(hundred_reads()) == "");
}

TEST_CASE("each advice is given beyond its limit, and not at it") {
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
    CHECK(begins(pieces(65, 33), "The ranks' pieces interleave"));
    CHECK(pieces(66, 33) == "");
    CHECK(pieces(64, 60) == "");
    CHECK(pieces(65, 33, false) == "");
    const auto interrupted = [&](std::uint64_t times) {
        return changed([=](Statistics& statistics) { statistics.interruptions = times; });
    };
    CHECK(interrupted(25) == "");
    CHECK(begins(interrupted(26), "Calls that need the file as it is"));
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
    CHECK(begins(hint_after_bypassing(51, 25), "Storage answers these calls as quickly"));
    CHECK(hint_after_bypassing(51, 24) == "");
    const auto scattered = [&](std::uint64_t sleeps, std::uint64_t went_past, std::uint64_t hits) {
        return changed([=](Statistics& statistics) {
            statistics.suspensions = sleeps;
            statistics.read.bypassed = went_past;
            statistics.read.hits = hits;
            statistics.read.consecutive = 0;
        });
    };
    CHECK(begins(scattered(3, 0, 24), "The accesses are scattered"));
    CHECK(begins(scattered(1, 1, 24), "The accesses are scattered"));
    CHECK(scattered(3, 0, 25) == "");
    CHECK(scattered(2, 0, 24) == "");
    CHECK(scattered(0, 1, 24) == "");
    const auto unused = [&](std::uint64_t started, std::uint64_t not_used) {
        return changed([=](Statistics& statistics) {
            statistics.ahead_started = started;
            statistics.ahead_unused = not_used;
        });
    };
    CHECK(begins(unused(8, 5), "Most of what was read ahead was not used"));
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
    CHECK(begins(in_sequence(65, 33, 0), "It is read in sequence"));
    CHECK(in_sequence(66, 33, 0) == "");
    CHECK(in_sequence(64, 64, 0) == "");
    CHECK(in_sequence(65, 33, 1) == "");
    CHECK(begins(changed([](Statistics& statistics) { statistics.read.bytes = 100ULL << 20U; }),
                 "The program's own calls are as large"));
    CHECK(changed([](Statistics& statistics) { statistics.read.bytes = (100ULL << 20U) - 1; }) == "");
}

TEST_CASE("files_below_16_calls_share_one_line") {
    Told told_file;
    Heard& heard = told_file.heard;
    told_file.rule.brief = true;
    std::strcpy(told_file.file->path, "/data/x");
    Statistics few;
    few.read.calls = 10;
    few.write.calls = 5;
    few.read.bytes = 3000;
    few.write.bytes = 4000;
    const auto report = [&](const Statistics& counted, const char* stopped) {
        told_file.file->statistics = counted;
        told_file.file->why_released = stopped;
        buffer::report_file(*told_file.file);
    };
    report(few, nullptr);
    report(few, nullptr);
    CHECK(heard.text() == "");
    few.read.calls = 1;
    few.write.calls = 0;
    report(few, "it was mapped");
    CHECK(heard.text() == "sonde: /data/x  left as it was after 1 call: it was mapped\n");
    few.write.calls = 1;
    report(few, "it was mapped");
    CHECK(heard.text().find("after 2 calls: it was mapped\n") != std::string::npos);
    const std::size_t before = heard.text().size();
    few.read.calls = 16;
    few.write.calls = 0;
    report(few, nullptr);
    CHECK(heard.text().substr(before).find("program 16 calls") != std::string::npos);
    const std::size_t end = heard.text().size();
    buffer::report_at_end();
    CHECK(heard.text().substr(end) ==
          "sonde: 2 other files, each of fewer than 16 calls: together 30 calls, 0.014 MB (the option verbose in "
          "IOBUF_PARAMS tells of each)\n");
    const std::size_t length_before = heard.text().size();
    buffer::report_at_end();  // once a process
    CHECK(heard.text().size() == length_before);
}

TEST_CASE("unmatched_pattern_is_named_if_other_files_opened") {
    for (const bool strangers : {false, true}) {
        for (const bool verbose : {false, true}) {
            Heard heard;
            settings::Settings& settings = use(verbose ? "*.dat,*.log:verbose" : "*.dat,*.log");
            state.report = open(heard.text_file.c_str(), O_WRONLY | O_APPEND);
            settings.rules[1].matched = 1;
            state.strangers = strangers;
            buffer::report_at_end();
            CHECK(heard.text() ==
                  (strangers && verbose ? "sonde: the pattern \"*.dat\" matched no file of this program.\n" : ""));
        }
    }
}

TEST_CASE("few_calls_use_singular_and_open_files_report_once") {
    Told told_file;
    Heard& heard = told_file.heard;
    told_file.rule.brief = true;
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
    const std::string text = heard.text();
    CHECK(text.find("/open  (*: 4 buffers of 1048576 bytes)\n  write  program 20 calls, 0.020 MB") !=
          std::string::npos);
    CHECK(text.find("sonde: 1 other file of fewer than 16 calls: together 15 calls, 1.000 MB (the option verbose") !=
          std::string::npos);
    CHECK(file_of(fd).statistics.write.calls == 0);
    CHECK(close_buffered(fd) == 0);
    CHECK(heard.text() == text);
}
