// SPDX-License-Identifier: Apache-2.0
#include "cache/verification.hpp"

#include "model/error_line.hpp"
#include "model/state.hpp"
#include "system/text.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace sonde::buffer {

namespace {

void report_difference(const File& file, std::int64_t offset) noexcept {
    constexpr std::uint64_t max_reports = 10;  // a program may read the same bytes a million times
    if (state.process_totals.differences.fetch_add(1, std::memory_order_relaxed) >= max_reports) {
        return;
    }
    system::Text text;
    begin_error_line(text);
    text << file.path << ": at byte " << offset
         << " storage holds other data than the buffer: another process has written to the file, or the library has a "
            "fault; set SONDE_IOBUF=off for this program\n";
    log_error_line(text);
}

}  // namespace

void verify_bytes(const File& file, int fd, const char* bytes, std::size_t count, std::int64_t offset) noexcept {
    const int saved_errno = errno;
    char stored[4096];
    for (std::size_t done = 0; done < count && fd >= 0;) {
        const std::size_t part = std::min(sizeof(stored), count - done);
        const std::int64_t position = offset + static_cast<std::int64_t>(done);
        const ssize_t bytes_read = state.storage.pread(fd, stored, part, position);
        if (bytes_read < 0) {
            break;
        }
        std::memset(stored + bytes_read, 0,
                    part - static_cast<std::size_t>(bytes_read));  // before an end that is not yet written
        const char* differs = std::mismatch(stored, stored + part, bytes + done).first;
        if (differs != stored + part) {
            report_difference(file, position + (differs - stored));
            break;
        }
        done += part;
    }
    errno = saved_errno;
}

}  // namespace sonde::buffer
