// SPDX-License-Identifier: Apache-2.0
// Reports of the library, written to files of the test.
#pragma once

#include "buffered.hpp"
#include "files/report.hpp"
#include "model/state.hpp"
#include "system/clock.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <memory>
#include <string>

namespace under_test {

using buffer::File;
using buffer::state;
using buffer::Statistics;

/// Redirects all reports to files of the test.
struct CapturedReports {
    Folder folder;
    std::string text_file = folder.path + "/text";
    CapturedReports() {
        use("*");
        state.report_fd = open(text_file.c_str(), O_CREAT | O_WRONLY | O_APPEND, 0644);
        state.json_report_folder = folder.path.c_str();
        state.few_call_totals.files = state.few_call_totals.calls = state.few_call_totals.bytes = 0;
    }
    ~CapturedReports() {
        close(state.report_fd);
        if (state.json_report_fd >= 0) {
            buffer::unmark_own_descriptor(state.json_report_fd);
            close(state.json_report_fd);
        }
        state.report_fd = state.json_report_fd = -1;
        state.json_report_folder = nullptr;
        state.is_reported = false;
        state.cannot_detect_others = false;
        state.has_uncovered_files = false;
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
inline Statistics hundred_reads() {
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

inline const char* const line_of_reads =
    "  read   program 100 calls, 5.000 MB -> storage 10 calls, 6.000 MB in 1.500 s; 90 calls answered from the buffer, "
    "99 consecutive, 3 unaligned\n";

/// A rule for all files whose report has every detail.
inline settings::Rule make_rule_for_all_files() {
    settings::Rule rule;
    rule.pattern[0] = '*';
    rule.verbose = true;
    return rule;
}

/// An unopened file with 4 pages of 1 MiB and the statistics of hundred_reads().
struct ReportedFile {
    CapturedReports captured;
    settings::Rule rule = make_rule_for_all_files();
    std::unique_ptr<File> file = std::make_unique<File>();
    ReportedFile() {
        file->rule = &rule;
        file->pages.page_size = 1 << 20;
        file->pages.max_pages = 4;
        file->pages.prefetch = 1;
        file->opened_ns = system::now_ns();
        file->path[0] = 'x';
        file->statistics = hundred_reads();
    }
    std::string text() {
        buffer::report_file(*file);
        return captured.text();
    }
};

}  // namespace under_test
