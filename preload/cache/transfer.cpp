// SPDX-License-Identifier: Apache-2.0
// Transfers data between program, pages and storage.

#include "cache/transfer.hpp"

#include <algorithm>
#include "cache/pages.hpp"
#include "cache/profitability.hpp"
#include "cache/verification.hpp"
#include "cache/work_queue.hpp"
#include "cache/writeback.hpp"
#include "model/registry.hpp"
#include "model/state.hpp"
#include "model/unlocked_scope.hpp"

namespace sonde::buffer {

namespace {

// --- storage without a page in between ---

ssize_t read_without_pages(File& file, const AccessForecast& forecast, char* to, std::size_t bytes,
                           std::int64_t offset) noexcept {
    std::size_t done = 0;
    int error = 0;
    ++file.active_calls.in_storage;
    const int fd = file.descriptors.read_fd;
    UnlockedScope unlocked(file, &file.statistics.wait_ns);
    while (done < bytes) {
        const ssize_t result =
            state.storage.pread(fd, to + done, bytes - done, offset + static_cast<std::int64_t>(done));
        if (result > 0) {
            done += static_cast<std::size_t>(result);
        } else if (result == 0 || errno != EINTR) {
            error = result < 0 ? errno : 0;
            break;
        }
    }
    if (error == 0) {
        std::memset(to + done, 0, bytes - done);  // a hole that the program made by writing further on
    }
    unlocked.end();
    --file.active_calls.in_storage;
    ++file.statistics.read.storage_calls;
    file.statistics.read.storage_bytes += done;
    file.statistics.read.storage_ns += unlocked.elapsed_ns;
    record_call_time(file, std::min<std::uint64_t>(done, forecast.new_bytes), unlocked.elapsed_ns);
    return error == 0 ? static_cast<ssize_t>(bytes) : done > 0 ? static_cast<ssize_t>(done) : -error;
}

/// Drops pages of this range that another thread loaded during a write: they may have the data from before it.
void drop_pages_in_range(File& file, std::int64_t offset, std::size_t bytes) noexcept {
    const std::int64_t last = (offset + static_cast<std::int64_t>(bytes) - 1) / file.pages.page_size;
    for (std::int64_t index = offset / file.pages.page_size; index <= last;) {
        Page* page = file.pages.count > 0 ? find_page(file, index) : nullptr;
        if (page != nullptr && (page->activity == PageActivity::Loading || page->activity == PageActivity::Writing)) {
            wait_for_change(file);
            continue;
        }
        if (page != nullptr && !page->is_dirty) {
            drop_page(file, *page);
        } else if (page != nullptr) {
            page->valid = page->dirty;  // written after us, in the order of the program
        }
        ++index;
    }
}

ssize_t write_without_pages(File& file, const char* from, std::size_t bytes, std::int64_t offset) noexcept {
    const int before = flush_file(file);  // what was written earlier arrives earlier
    if (before != 0) {
        return before;
    }
    ++file.active_calls.in_storage;
    const int fd = file.descriptors.write_fd;
    const bool appends = file.append.only_appends;
    ssize_t result = 0;
    UnlockedScope unlocked(file, &file.statistics.wait_ns);
    do {
        result = state.storage.pwrite(fd, from, bytes, offset);
    } while (result < 0 && errno == EINTR);
    result = result < 0 ? -errno : result;
    const std::int64_t size = appends && result > 0 ? read_size_from_kernel(fd) : -1;
    unlocked.end();
    --file.active_calls.in_storage;
    ++file.statistics.write.storage_calls;
    if (appends && result > 0) {
        check_appended_size(file, static_cast<std::uint64_t>(result), size);
    }
    file.statistics.write.storage_ns += unlocked.elapsed_ns;
    if (result > 0) {
        record_call_time(file, static_cast<std::uint64_t>(result), unlocked.elapsed_ns);
        file.statistics.write.storage_bytes += static_cast<std::uint64_t>(result);
        drop_pages_in_range(file, offset, static_cast<std::size_t>(result));
        file.size = std::max(file.size, offset + result);
    }
    return result;
}

/// Bytes from `offset` on that go straight: whole pages, or, when pages do not pay, all up to the next page that is
/// held.
std::size_t count_bytes_without_pages(File& file, std::int64_t offset, std::size_t bytes, bool pages_pay) noexcept {
    std::size_t run = 0;
    while (run < bytes) {
        const std::int64_t position = offset + static_cast<std::int64_t>(run);
        const auto inside = static_cast<std::size_t>(position % file.pages.page_size);
        const std::size_t part = std::min<std::size_t>(file.pages.page_size - inside, bytes - run);
        const bool is_whole_page = part == file.pages.page_size;
        if ((pages_pay && !is_whole_page) ||
            (file.pages.count > 0 && find_page(file, position / file.pages.page_size) != nullptr)) {
            break;
        }
        run += part;
    }
    return run;
}

// --- reading ---

/// Returns the part of the page to load for a read of [begin, end) in it.
Range choose_range_to_load(const File& file, const AccessForecast& forecast, std::uint32_t begin,
                           std::uint32_t end) noexcept {
    if (!forecast.is_page_worthwhile) {
        return {begin, end};
    }
    if (forecast.bytes_to_load >= file.pages.page_size) {
        return {0, file.pages.page_size};
    }
    const auto reach = static_cast<std::uint32_t>(forecast.bytes_to_load);
    if (forecast.is_backward) {
        return {end > reach && end - reach < begin ? end - reach : end > reach ? begin : 0, end};
    }
    return {begin,
            std::max(end, std::min(file.pages.page_size, begin + std::min(reach, file.pages.page_size - begin)))};
}

}  // namespace

ssize_t read_through_pages(File& file, const AccessForecast& forecast, char* to, std::size_t bytes, std::int64_t offset,
                           bool& hit) noexcept {
    std::size_t done = 0;
    bool pay = forecast.is_page_worthwhile;
    while (done < bytes) {
        const std::int64_t position = offset + static_cast<std::int64_t>(done);
        const std::int64_t index = position / file.pages.page_size;
        const auto begin = static_cast<std::uint32_t>(position % file.pages.page_size);
        const auto part = static_cast<std::uint32_t>(std::min<std::size_t>(file.pages.page_size - begin, bytes - done));
        Page* page = find_page(file, index);
        bool again = false;
        if (page == nullptr) {
            hit = false;
            pay = pay || (!forecast.bypasses_pages && is_page_worthwhile(file, index));
            const std::size_t run = count_bytes_without_pages(file, position, bytes - done, pay);
            if (run == 0) {
                page =
                    forecast.leaves_page_behind ? reuse_page_behind_stream(file, index, forecast.is_backward) : nullptr;
                page = page != nullptr ? page : allocate_page(file, index, again);
            }
            if (again) {
                continue;
            }
            if (page == nullptr) {  // also when there is no memory for it
                const ssize_t result = read_without_pages(file, forecast, to + done, run > 0 ? run : part, position);
                if (result <= 0) {
                    return done > 0 ? static_cast<ssize_t>(done) : result;
                }
                done += static_cast<std::size_t>(result);
                continue;
            }
        }
        if (page->activity == PageActivity::Loading) {
            hit = false;
            wait_for_change(file);
            continue;
        }
        if (!page->valid.covers(begin, begin + part)) {
            hit = false;
            if (page->activity == PageActivity::Writing) {
                wait_for_change(file);
                continue;
            }
            const Range want = choose_range_to_load(file, forecast, begin, begin + part);
            const int error = load_page_range(file, *page, want.begin, want.end, true);
            if (error != 0) {
                return done > 0 ? static_cast<ssize_t>(done) : error;
            }
        }
        if (state.is_verifying && !page->is_dirty && page->activity == PageActivity::No) {
            verify_bytes(file, file.descriptors.read_fd, page->data + begin, part, position);
        }
        std::memcpy(to + done, page->data + begin, part);
        count_used_read_ahead(file, *page);
        mark_page_used(file, *page);
        done += part;
    }
    return static_cast<ssize_t>(done);
}

// --- writing ---
namespace {

/// Ensures that the page can take one more range. Returns false if it flushed the file to do so: find the page again.
bool reserve_page_range(File& file, Page& page, int& error) noexcept {
    if (page.dirty.has_room() && page.valid.has_room()) {
        return true;
    }
    if (!page.dirty.has_room()) {
        error = flush_file(file);
        return false;
    }
    page.valid = page.dirty;
    return true;
}

void copy_into_page(File& file, Page& page, const char* from, std::uint32_t begin, std::uint32_t part) noexcept {
    std::memcpy(page.data + begin, from, part);
    page.valid.add(begin, begin + part);
    page.dirty.add(begin, begin + part);
    if (!page.is_dirty) {
        mark_page_dirty(file, page);
    }
    count_used_read_ahead(file, page);
    mark_page_used(file, page);
    file.size = std::max(file.size, page.index * file.pages.page_size + begin + part);
    const bool complete =
        page.dirty.count() == 1 && page.dirty[0].begin == 0 && page.dirty[0].end == file.pages.page_size;
    if (!page.is_written_past &&
        (begin + part == file.pages.page_size || complete)) {  // the stream continues in another page
        page.is_written_past = true;
        enqueue_file(file);
    }
}

bool is_page_write_worthwhile(File& file, const AccessForecast& forecast, std::int64_t offset) noexcept {
    const std::int64_t index = offset / file.pages.page_size;
    return forecast.is_page_worthwhile || (!forecast.bypasses_pages && offset == file.size) ||
           (!forecast.bypasses_pages && file.pages.count > 0 && find_page(file, index - 1) != nullptr) ||
           (!forecast.bypasses_pages && is_page_worthwhile(file, index));
}

}  // namespace

ssize_t write_through_pages(File& file, const AccessForecast& forecast, const char* from, std::size_t bytes,
                            std::int64_t offset, bool& hit) noexcept {
    if (file.is_write_through) {  // also where a page holds what was read before
        hit = false;
        return write_without_pages(file, from, bytes, offset);
    }
    std::size_t done = 0;
    while (done < bytes) {
        const std::int64_t position = offset + static_cast<std::int64_t>(done);
        const std::int64_t index = position / file.pages.page_size;
        const auto begin = static_cast<std::uint32_t>(position % file.pages.page_size);
        const auto part = static_cast<std::uint32_t>(std::min<std::size_t>(file.pages.page_size - begin, bytes - done));
        Page* page = find_page(file, index);
        bool again = false;
        if (page == nullptr) {
            const bool pays = is_page_write_worthwhile(file, forecast, position);
            const std::size_t run = count_bytes_without_pages(file, position, bytes - done, pays);
            if (run == 0) {
                page = allocate_page(file, index, again);
            }
            if (again) {
                continue;
            }
            if (page == nullptr) {
                hit = false;
                const ssize_t result = write_without_pages(file, from + done, run > 0 ? run : part, position);
                if (result <= 0) {
                    return done > 0 ? static_cast<ssize_t>(done) : result;
                }
                done += static_cast<std::size_t>(result);
                if (static_cast<std::size_t>(result) < (run > 0 ? run : part)) {
                    return static_cast<ssize_t>(done);
                }
                continue;
            }
        }
        if (page->activity == PageActivity::Loading || page->activity == PageActivity::Writing) {
            wait_for_change(file);
            continue;
        }
        if (page->activity == PageActivity::Queued) {
            page->activity = PageActivity::No;  // what would be read is being replaced
            page->is_read_ahead = false;
            --file.pages.queued_for_read_ahead;
        }
        int error = 0;
        if (!reserve_page_range(file, *page, error)) {
            if (error != 0) {
                return done > 0 ? static_cast<ssize_t>(done) : error;
            }
            continue;
        }
        copy_into_page(file, *page, from + done, begin, part);
        done += part;
    }
    return static_cast<ssize_t>(done);
}

}  // namespace sonde::buffer
