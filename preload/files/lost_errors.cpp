// SPDX-License-Identifier: Apache-2.0
#include "files/lost_errors.hpp"

#include "model/error_line.hpp"
#include "model/state.hpp"
#include "system/text.hpp"

#include <cerrno>

namespace sonde::buffer {

namespace {

using system::Text;

void append_error_name(Text& text, int error) noexcept {
    constexpr struct {
        int number;
        const char* name;
    } names[] = {{EIO, "EIO, input/output error"},
                 {ENOSPC, "ENOSPC, no space left on device"},
                 {EDQUOT, "EDQUOT, disk quota exceeded"},
                 {EFBIG, "EFBIG, file too large"},
                 {ESTALE, "ESTALE, stale file handle"}};
    for (const auto& entry : names) {
        if (entry.number == error) {
            text << entry.name;
            return;
        }
    }
    text << "error " << error;
}

}  // namespace

void report_lost_error(const File& file, int error) noexcept {
    Text text;
    begin_error_line(text);
    text << file.path << ": a delayed write failed (";
    append_error_name(text, error);
    text << "), and no call of the program reported it; data is missing from the file\n";
    log_error_line(text);
    state.process_totals.lost_errors.fetch_add(1, std::memory_order_relaxed);
}

void report_unseen_errors(File& file) noexcept {
    bool unseen_error = false;
    for (Description* description = file.descriptors.descriptions; description != nullptr;
         description = description->next) {
        unseen_error |= description->error_seen != file.errors.count;
        description->error_seen = file.errors.count;
    }
    if (unseen_error) {
        report_lost_error(file, file.errors.last_errno);
    }
}

}  // namespace sonde::buffer
