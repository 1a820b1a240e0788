// SPDX-License-Identifier: Apache-2.0
// Dirty pages on their way to storage, in the order in which they became dirty, one at a time: what a killed process
// leaves behind of a file written from front to back is a beginning of what it wrote.
#include "buffer/inside.hpp"
#include "system/clock.hpp"

#include <sys/vfs.h>
#include <algorithm>

namespace sonde::buffer {

namespace {

constexpr std::uint64_t retry_ns = 1'000'000'000;

void link_first(File& file, Page& page) noexcept {
    page.is_dirty = true;
    page.dirty_before = nullptr;
    page.dirty_next = file.dirty_first;
    (file.dirty_first != nullptr ? file.dirty_first->dirty_before : file.dirty_last) = &page;
    file.dirty_first = &page;
    ++file.dirty_pages;
}

/// Writes one range; `done` counts what arrived, also on error. 0 or a negative errno.
int write_range(const File& file, int fd, const Page& page, Range range, std::uint32_t& done) noexcept {
    const std::int64_t start = page.index * file.page_size;
    while (done < range.end - range.begin) {
        const std::uint32_t at = range.begin + done;
        const ssize_t got = state.below.pwrite(fd, page.data + at, range.end - at, start + at);
        if (got > 0) {
            done += static_cast<std::uint32_t>(got);
        } else if (got == 0 || errno != EINTR) {
            return got == 0 ? -EIO : -errno;
        }
    }
    return 0;
}

bool suits_direct(const File& file, Range range) noexcept {
    return file.direct_out >= 0 && file.direct_align != 0 && range.begin % file.direct_align == 0 &&
           range.end % file.direct_align == 0;
}

}  // namespace

void note_dirty(File& file, Page& page) noexcept {
    page.is_dirty = true;
    page.dirty_next = nullptr;
    page.dirty_before = file.dirty_last;
    (file.dirty_last != nullptr ? file.dirty_last->dirty_next : file.dirty_first) = &page;
    file.dirty_last = &page;
    page.dirty_since_ns = system::clock_ns(CLOCK_MONOTONIC_COARSE);
    ++file.dirty_pages;
    if (file.dirty_pages == 1) {
        hand_to_workers(file);  // it must not stay here for ever
    }
}

void forget_dirty(File& file, Page& page) noexcept {
    (page.dirty_before != nullptr ? page.dirty_before->dirty_next : file.dirty_first) = page.dirty_next;
    (page.dirty_next != nullptr ? page.dirty_next->dirty_before : file.dirty_last) = page.dirty_before;
    page.dirty_before = page.dirty_next = nullptr;
    page.is_dirty = false;
    --file.dirty_pages;
}

int write_oldest(File& file, bool program_waits) noexcept {
    Page& page = *file.dirty_first;
    if (page.busy == Busy::Loading) {  // its gaps are being filled; then it is our turn
        wait_for_change(file);
        return 0;
    }
    forget_dirty(file, page);
    const RangeSet ranges = page.dirty;
    page.dirty.clear();
    page.busy = Busy::Writing;
    page.full = false;
    file.writing = true;
    ++file.in_flight;
    const int fd = file.writer;
    int error = 0;
    std::uint32_t at = 0;
    std::uint32_t done = 0;
    std::uint64_t bytes = 0;
    {
        Outside outside(file, program_waits ? &file.statistics.wait_ns : nullptr);
        for (; at < ranges.count() && error == 0; ++at) {
            done = 0;
            if (suits_direct(file, ranges[at])) {
                // What this way refuses, for whatever reason, the ordinary way may take; its error is the one that
                // counts.
                static_cast<void>(write_range(file, file.direct_out, page, ranges[at], done));
            }
            error = error == 0 ? write_range(file, fd, page, ranges[at], done) : error;
            bytes += done;
        }
        outside.end();
        file.statistics.write.below_ns += outside.spent_ns;
        note_transfer(file, bytes, outside.spent_ns);
    }
    file.statistics.write.below += at;
    file.statistics.write.below_bytes += bytes;
    page.busy = Busy::No;
    file.writing = false;
    --file.in_flight;
    if (error != 0) {
        page.dirty.add(ranges[at - 1].begin + done, ranges[at - 1].end);
        for (; at < ranges.count(); ++at) {
            page.dirty.add(ranges[at].begin, ranges[at].end);
        }
        link_first(file, page);
        keep_error(file, -error);
        file.retry_after_ns = system::now_ns() + retry_ns;
    }
    file.changed.tell();
    return error;
}

int flush_file(File& file) noexcept {
    // As many as there are now: another thread may make new ones as fast as we write.
    std::uint32_t left = file.dirty_pages + 1;
    while (file.writing || (file.dirty_first != nullptr && left > 0)) {
        if (file.writing || file.dirty_first->busy == Busy::Loading) {
            wait_for_change(file);
            continue;
        }
        --left;
        const int error = write_oldest(file, true);
        if (error != 0) {
            return error;
        }
    }
    return 0;
}

void keep_error(File& file, int error) noexcept {
    file.error = error;
    ++file.error_count;
}

bool take_error(File& file, Description& description, int& error) noexcept {
    if (description.error_seen == file.error_count) {
        return false;
    }
    description.error_seen = file.error_count;
    error = file.error;
    return true;
}

bool space_is_low(File& file) noexcept {
    struct statfs about {};
    if (file.writer < 0 || raw::call(SYS_fstatfs, file.writer, raw::number(&about)) != 0 || about.f_blocks == 0) {
        return false;  // nobody knows
    }
    const std::uint64_t buffered = static_cast<std::uint64_t>(file.page_size) * file.page_limit;
    const std::uint64_t reserve = std::max<std::uint64_t>(16U << 20U, std::min<std::uint64_t>(2 * buffered, 1U << 30U));
    return static_cast<std::uint64_t>(about.f_bavail) * static_cast<std::uint64_t>(about.f_bsize) < reserve;
}

}  // namespace sonde::buffer
