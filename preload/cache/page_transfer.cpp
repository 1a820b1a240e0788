// SPDX-License-Identifier: Apache-2.0

#include "cache/page_transfer.hpp"

#include "cache/dirty_pages.hpp"
#include "cache/profitability.hpp"
#include "cache/verification.hpp"
#include "model/registry.hpp"
#include "model/state.hpp"
#include "system/clock.hpp"

#include <algorithm>

namespace sonde::buffer {

namespace {

/// A write that storage refused is repeated after this time.
constexpr std::uint64_t retry_ns = 1'000'000'000;

}  // namespace

bool PageTransfer::begin_load(File& file, Page& page, std::uint32_t begin, std::uint32_t end) noexcept {
    const std::int64_t start = page.index * file.pages.page_size;
    const std::int64_t bytes_to_end = file.size - start;
    end = bytes_to_end < end ? static_cast<std::uint32_t>(std::max<std::int64_t>(bytes_to_end, 0)) : end;
    if (begin >= end) {
        return false;
    }
    if (page.activity == PageActivity::Queued) {
        --file.pages.queued_for_read_ahead;
    }
    page.activity = PageActivity::Loading;
    ++file.active_calls.in_storage;
    file_ = &file;
    page_ = &page;
    writes_ = false;
    page_offset_ = start;
    begin_ = done_until_ = part_.end = begin;
    end_ = end;
    align_ = file.descriptors.direct_alignment;
    page_size_ = file.pages.page_size;
    fd_ = file.descriptors.read_fd;
    direct_ = page.valid.empty() ? file.descriptors.direct_read_fd : -1;
    return true;
}

void PageTransfer::begin_write(File& file) noexcept {
    Page& page = *file.dirty.first;
    state.undelivered_pages.fetch_add(1, std::memory_order_relaxed);  // first: it must not look as if there were none
    mark_page_clean(file, page);
    ranges_ = page.dirty;
    page.dirty.clear();
    page.activity = PageActivity::Writing;
    page.is_written_past = false;
    file.active_calls.is_write_in_flight = true;
    ++file.active_calls.in_storage;
    file_ = &file;
    page_ = &page;
    writes_ = true;
    page_offset_ = page.index * file.pages.page_size;
    align_ = file.descriptors.direct_alignment;
    page_size_ = file.pages.page_size;
    fd_ = file.descriptors.write_fd;
    appends_ = file.append.only_appends;
    direct_ = appends_ ? -1 : file.descriptors.direct_write_fd;
}

bool PageTransfer::select_next_part() noexcept {
    if (writes_) {
        if (parts_ == ranges_.count()) {
            return false;
        }
        part_ = ranges_[parts_];
        uses_direct_fd_ = direct_ >= 0 && align_ != 0 && part_.begin % align_ == 0 && part_.end % align_ == 0;
    } else {
        part_ = page_->valid.gap(part_.end, end_);
        if (part_.begin == part_.end) {
            return false;
        }
        uses_direct_fd_ = direct_ >= 0 && align_ != 0 && part_.begin % align_ == 0 && part_.end - part_.begin >= align_;
    }
    done_until_ = part_.begin;
    ++parts_;
    return true;
}

bool PageTransfer::make_next_request(PageRequest& request) noexcept {
    if (error_ != 0 || (done_until_ == part_.end && !select_next_part())) {
        return false;
    }
    std::uint32_t bytes = part_.end - done_until_;
    if (uses_direct_fd_ && !writes_) {  // whole sectors; what the end of the file cuts off is no error
        bytes = (bytes + align_ - 1) / align_ * align_;
        bytes = std::min(bytes, page_size_ - done_until_);
    }
    request = {uses_direct_fd_ ? direct_ : fd_, page_->data + done_until_, bytes, page_offset_ + done_until_};
    return true;
}

void PageTransfer::store_result(ssize_t result) noexcept {
    if (uses_direct_fd_) {
        // If a direct transfer fails, it is repeated without O_DIRECT, and the error of the repetition is reported.
        uses_direct_fd_ = false;
        result = std::clamp<ssize_t>(result, 0, part_.end - done_until_);
        done_until_ += static_cast<std::uint32_t>(result);
        bytes_ += static_cast<std::uint64_t>(result);
    } else if (result > 0) {
        done_until_ += static_cast<std::uint32_t>(result);
        bytes_ += static_cast<std::uint64_t>(result);
        kernel_size_ = appends_ ? read_size_from_kernel(fd_) : -1;
    } else if (result == 0 && !writes_) {
        // Bytes between the kernel's end of the file and the end that the program has set read as zeros.
        std::memset(page_->data + done_until_, 0, part_.end - done_until_);
        done_until_ = part_.end;
    } else if (result != -EINTR) {
        error_ = result == 0 ? -EIO : static_cast<int>(result);
    }
}

ssize_t PageTransfer::execute(const PageRequest& request) const noexcept {
    const ssize_t result = writes_ ? state.storage.pwrite(request.fd, request.data, request.bytes, request.offset)
                                   : state.storage.pread(request.fd, request.data, request.bytes, request.offset);
    if (writes_ && result > 0 && !appends_ && state.is_verifying) {
        verify_bytes(*file_, fd_, request.data, static_cast<std::size_t>(result), request.offset);
    }
    return result < 0 ? -errno : result;
}

void PageTransfer::execute_all() noexcept {
    PageRequest request{};
    while (make_next_request(request)) {
        store_result(execute(request));
    }
}

int PageTransfer::finish(std::uint64_t spent_ns) noexcept {
    File& file = *file_;
    record_transfer_time(file, bytes_, spent_ns);
    TransferCounts& counted = writes_ ? file.statistics.write : file.statistics.read;
    counted.storage_calls += parts_;
    counted.storage_bytes += bytes_;
    counted.storage_ns += spent_ns;
    page_->activity = PageActivity::No;
    --file.active_calls.in_storage;
    const int error = writes_ ? finish_write() : finish_load();
    file.change_condition.notify_all();
    return error;
}

int PageTransfer::finish_load() noexcept {
    Page& page = *page_;
    page.is_read_ahead = page.is_read_ahead && error_ == 0;  // the program's own read will meet the error
    if (error_ == 0 && !page.valid.add(begin_, end_)) {
        // Too many pieces: what is dirty must be known, and the part just read if there is room. The caller copies
        // from it before the lock is given back in any case.
        page.valid = page.dirty;
        page.valid.add(begin_, end_);
    }
    return error_;
}

int PageTransfer::finish_write() noexcept {
    File& file = *file_;
    file.active_calls.is_write_in_flight = false;
    if (appends_ && bytes_ > 0) {
        check_appended_size(file, bytes_, kernel_size_);
    }
    if (error_ != 0) {
        page_->dirty.add(done_until_, part_.end);
        for (std::uint32_t range = parts_; range < ranges_.count(); ++range) {
            page_->dirty.add(ranges_[range].begin, ranges_[range].end);
        }
        requeue_dirty_page(file, *page_);
        store_error(file, -error_);
        file.errors.retry_after_ns = system::now_ns() + retry_ns;
    }
    state.undelivered_pages.fetch_sub(1, std::memory_order_release);
    return error_;
}

}  // namespace sonde::buffer
