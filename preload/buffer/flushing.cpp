// SPDX-License-Identifier: Apache-2.0
// Dirty pages on their way to storage, in the order in which they became dirty, one at a time: what a killed process
// leaves behind of a file written from front to back is a beginning of what it wrote.
#include "buffer/flushing.hpp"

#include "buffer/below.hpp"
#include "buffer/outside.hpp"
#include "buffer/state.hpp"
#include "buffer/workers.hpp"
#include "system/clock.hpp"

#include <sys/vfs.h>
#include <algorithm>

namespace sonde::buffer {

void note_dirty(File& file, Page& page) noexcept {
    page.is_dirty = true;
    page.dirty_next = nullptr;
    page.dirty_before = file.dirty.last;
    (file.dirty.last != nullptr ? file.dirty.last->dirty_next : file.dirty.first) = &page;
    file.dirty.last = &page;
    page.dirty_since_ns = system::clock_ns(CLOCK_MONOTONIC_COARSE);
    state.undelivered.fetch_add(1, std::memory_order_relaxed);
    ++file.dirty.pages;
    if (file.dirty.pages == 1) {
        call_workers();  // it must not stay here for ever, but nobody is in a hurry: they go round often enough
    }
}

void note_still_dirty(File& file, Page& page) noexcept {
    page.is_dirty = true;
    page.dirty_before = nullptr;
    page.dirty_next = file.dirty.first;
    (file.dirty.first != nullptr ? file.dirty.first->dirty_before : file.dirty.last) = &page;
    file.dirty.first = &page;
    state.undelivered.fetch_add(1, std::memory_order_relaxed);
    ++file.dirty.pages;
}

void forget_dirty(File& file, Page& page) noexcept {
    (page.dirty_before != nullptr ? page.dirty_before->dirty_next : file.dirty.first) = page.dirty_next;
    (page.dirty_next != nullptr ? page.dirty_next->dirty_before : file.dirty.last) = page.dirty_before;
    page.dirty_before = page.dirty_next = nullptr;
    page.is_dirty = false;
    state.undelivered.fetch_sub(1, std::memory_order_release);
    --file.dirty.pages;
}

int write_oldest(File& file, bool program_waits) noexcept {
    if (file.dirty.first->busy == Busy::Loading) {  // its gaps are being filled; then it is our turn
        wait_for_change(file);
        return 0;
    }
    Job job;
    job.begin_write(file);
    Outside outside(file, program_waits ? &file.statistics.wait_ns : nullptr);
    job.do_all();
    outside.end();
    return job.finish(outside.spent_ns);
}

int flush_file(File& file) noexcept {
    // As many as there are now: another thread may make new ones as fast as we write.
    std::uint32_t left = file.dirty.pages + 1;
    while (file.turns.writing || (file.dirty.first != nullptr && left > 0)) {
        if (file.turns.writing || file.dirty.first->busy == Busy::Loading) {
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
    file.errors.last = error;
    ++file.errors.count;
}

bool take_error(File& file, Description& description, int& error) noexcept {
    if (description.error_seen == file.errors.count) {
        return false;
    }
    description.error_seen = file.errors.count;
    error = file.errors.last;
    return true;
}

bool space_is_low(const File& file) noexcept {
    struct statfs about {};
    return file.ends.writer >= 0 && raw::call(SYS_fstatfs, file.ends.writer, raw::number(&about)) == 0 &&
           space_is_low(file, about);
}

bool space_is_low(const File& file, const struct statfs& about) noexcept {
    if (about.f_blocks == 0) {
        return false;  // nobody knows
    }
    const std::uint64_t buffered = static_cast<std::uint64_t>(file.held.page_size) * file.held.limit;
    const std::uint64_t reserve = std::max<std::uint64_t>(16U << 20U, std::min<std::uint64_t>(2 * buffered, 1U << 30U));
    return static_cast<std::uint64_t>(about.f_bavail) * static_cast<std::uint64_t>(about.f_bsize) < reserve;
}

}  // namespace sonde::buffer
