// SPDX-License-Identifier: Apache-2.0
// Reads, writes and seeks through the buffer: admission of calls, calls left to the kernel, statistics.

#include "files/calls.hpp"

#include <unistd.h>
#include <algorithm>
#include <climits>
#include "cache/profitability.hpp"
#include "cache/readahead.hpp"
#include "cache/transfer.hpp"
#include "cache/writeback.hpp"
#include "model/registry.hpp"
#include "model/state.hpp"
#include "model/unlocked_scope.hpp"
#include "modes/modes.hpp"
#include "modes/watching.hpp"

namespace sonde::buffer {

namespace {

/// Largest buffered offset, so that the kernel never refuses a delayed write as too far; ext4 ends at 16 TiB.
constexpr std::int64_t largest_buffered_offset = 1LL << 43U;
/// After this many calls the library checks for other users of the file; its threads check by time.
constexpr std::uint32_t calls_between_looks = 64;
constexpr std::uint64_t space_check_bytes = 16U << 20U;

/// One call of the program on one file, from its admission to its end.
struct Call {
    int fd;
    bool writes;
    File* file = nullptr;
    Description* description = nullptr;
    bool moves_offset = false;  ///< uses the offset of the description
    std::int64_t offset = current_offset;
    CallResult result{false, nullptr, 0};
};

/// Handles a call on a suspended file. Returns true if the kernel executes it (see call.answer), false to admit it
/// again.
bool pass_call_of_suspended_file(Call& call, File& file, Description* description) noexcept {
    acquire_bypass_slot();  // for the calls that follow
    file.pass_through_calls.fetch_add(1, std::memory_order_seq_cst);
    if (file.mode.load(std::memory_order_seq_cst) != Mode::Suspended) {
        file.pass_through_calls.fetch_sub(1, std::memory_order_seq_cst);
        return false;
    }
    if (file.is_watched && file.calls_until_retry.load(std::memory_order_relaxed) <= 0) {
        call.result = {false, &file, 0, call.result.direction, call.fd, call.offset};
        return true;
    }
    const std::int32_t remaining = file.calls_until_retry.load(std::memory_order_relaxed) - 1;
    file.calls_until_retry.store(remaining, std::memory_order_relaxed);
    if (remaining > 0 || !file.is_retry_planned) {
        call.result.pass_through_file = &file;
        return true;
    }
    file.pass_through_calls.fetch_sub(1, std::memory_order_seq_cst);
    File* locked = file.is_watched ? nullptr : lock_file_of_descriptor(call.fd, description);
    if (locked != nullptr) {
        resume_buffering(*locked);
        if (locked->mode.load(std::memory_order_relaxed) == Mode::Suspended && !locked->is_retry_planned) {
            locked->is_retry_planned = true;  // another call needs the file as it is: try again later
            locked->calls_until_retry.store(64, std::memory_order_relaxed);
        }
        locked->lock.unlock();
    }
    return false;
}

/// Returns true, with the lock of the file held, when the buffer must serve the call; false when call.answer has the
/// result.
bool enter_buffered_call(Call& call) noexcept {
    while (true) {
        Description* description = table[call.fd].load(std::memory_order_acquire);
        File* file = description != nullptr ? description->file.load(std::memory_order_acquire) : nullptr;
        if (file == nullptr) {
            return false;
        }
        const Mode mode = file->mode.load(std::memory_order_acquire);
        if (mode == Mode::Released) {
            return false;
        }
        if (mode == Mode::Suspended) {
            if (pass_call_of_suspended_file(call, *file, description)) {
                return false;
            }
            continue;
        }
        file->lock.lock();
        if (table[call.fd].load(std::memory_order_relaxed) != description ||
            description->file.load(std::memory_order_relaxed) != file) {
            file->lock.unlock();
            continue;
        }
        call.file = file;
        call.description = description;
        File& locked_file = *file;
        if (locked_file.active_calls.is_gate_closed || (call.moves_offset && call.description->is_offset_busy) ||
            (call.writes && locked_file.active_calls.is_program_writing)) {
            wait_for_change(locked_file);
            locked_file.lock.unlock();
            continue;
        }
        if (locked_file.mode.load(std::memory_order_relaxed) != Mode::Active) {
            locked_file.lock.unlock();
            continue;
        }
        if (state.has_ended.load(std::memory_order_relaxed)) {
            release_file(locked_file, nullptr);
            locked_file.lock.unlock();
            continue;
        }
        ++locked_file.active_calls.running;
        call.description->is_offset_busy |= call.moves_offset;
        locked_file.active_calls.is_program_writing |= call.writes;
        return true;
    }
}

void leave_buffered_call(Call& call) noexcept {
    File& file = *call.file;
    --file.active_calls.running;
    if (call.moves_offset) {
        call.description->is_offset_busy = false;
    }
    if (call.writes) {
        file.active_calls.is_program_writing = false;
    }
    file.change_condition.notify_all();
}

/// Suspends buffering of the file for `calls` calls. The kernel executes this call, which is the first of them.
CallResult suspend_and_pass_call(Call& call, std::int32_t calls) noexcept {
    leave_buffered_call(call);
    ++call.file->statistics.interruptions;
    suspend_for(*call.file, calls);
    const Mode mode = call.file->mode.load(std::memory_order_relaxed);
    if (mode == Mode::Suspended) {
        call.file->pass_through_calls.fetch_add(1, std::memory_order_seq_cst);
        call.result.pass_through_file = call.file;
    }
    call.file->lock.unlock();
    return call.result;
}

/// The end of a call that was done here: `total` bytes from `start`, or a negative errno. `sleep`: buffering did not
/// pay.
CallResult finish_buffered_call(Call& call, std::int64_t start, ssize_t total, bool sleep) noexcept {
    File& file = *call.file;
    if (call.moves_offset && total > 0) {
        call.description->offset = start + total;
    }
    leave_buffered_call(call);
    release_if_grown(file);
    if (file.profitability.window_calls % calls_between_looks == 0) {
        release_if_shared(file);
    }
    if (sleep) {
        suspend_for(file, static_cast<std::int32_t>(file.profitability.suspension_calls));
    }
    file.lock.unlock();
    return {true, nullptr, total};
}

void count_transfer(TransferCounts& direction, const Stream& stream, std::int64_t offset, std::size_t bytes) noexcept {
    ++direction.calls;
    direction.bytes += bytes;
    ++direction.sizes[system::find_transfer_size_class(bytes)];
    direction.consecutive += stream.calls > 0 && offset == stream.last_end ? 1 : 0;
    direction.unaligned += offset % 4096 != 0 ? 1 : 0;
}

std::size_t sum_part_bytes(const IoPart* parts, std::size_t number) noexcept {
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < number; ++i) {
        bytes += parts[i].bytes;
    }
    return bytes;
}

/// Returns whether the kernel must execute the call, because it may fail or because the buffer does not support it.
bool must_kernel_do_call(const IoPart* parts, std::size_t number, std::size_t bytes, std::int64_t offset) noexcept {
    for (std::size_t i = 0; i < number; ++i) {
        const auto address = reinterpret_cast<std::uintptr_t>(parts[i].data);
        if (parts[i].bytes > 0 && (address < 65536 || address > (~std::uintptr_t{0} >> 1U))) {
            return true;  // EFAULT
        }
    }
    return bytes == 0 || bytes > (1ULL << 31U) - 4096 ||
           offset > largest_buffered_offset - static_cast<std::int64_t>(bytes);
}

}  // namespace

void record_watched_call(const CallResult& answer, std::int64_t result, std::uint64_t ns) noexcept {
    const system::Critical critical;
    Description* description = nullptr;
    File* file = result >= 0 && is_registered_descriptor(answer.watched_fd)
                     ? lock_file_of_descriptor(answer.watched_fd, description)
                     : nullptr;
    if (file == nullptr) {
        return;
    }
    if (file == answer.pass_through_file && file->is_watched && answer.direction < 0) {
        description->offset = result;  // of lseek()
        ++file->statistics.seeks;
    } else if (file == answer.pass_through_file && file->is_watched) {
        const bool writes = answer.direction == 1;
        const auto bytes = static_cast<std::size_t>(result);
        if (answer.offset == current_offset && (file->watch.calls() == 0 || description->stream.calls == 0)) {
            description->offset = raw::call(SYS_lseek, answer.watched_fd, 0, SEEK_CUR) - result;
        }
        const std::int64_t start = answer.offset == current_offset ? description->offset : answer.offset;
        TransferCounts& direction = writes ? file->statistics.write : file->statistics.read;
        count_transfer(direction, description->stream, start, bytes);
        ++direction.storage_calls;
        direction.storage_bytes += bytes;
        direction.storage_ns += ns;
        record_call_time(*file, bytes, ns);
        static_cast<void>(follow_stream(description->stream, start, start + result, file->pages.page_size));
        file->watch.add(writes, start, result, ns);
        description->offset = answer.offset == current_offset ? start + result : description->offset;
        if (file->watch.calls() >= watched_calls) {
            end_watch(*file);
        }
    }
    file->lock.unlock();
}

CallResult read(int fd, const IoPart* parts, std::size_t number, std::int64_t offset) noexcept {
    const system::Critical critical;
    Call call{.fd = fd,
              .writes = false,
              .moves_offset = offset == current_offset,
              .offset = offset,
              .result = {false, nullptr, 0, 0}};
    if (!enter_buffered_call(call)) {
        return call.result;
    }
    File& file = *call.file;
    Description& description = *call.description;
    std::size_t bytes = sum_part_bytes(parts, number);
    const std::int64_t start = offset == current_offset ? description.offset : offset;
    if (!description.reads || must_kernel_do_call(parts, number, bytes, start)) {
        return suspend_and_pass_call(call, 1);
    }
    count_transfer(file.statistics.read, description.stream, start, bytes);
    if (start + static_cast<std::int64_t>(bytes) > file.size) {
        if (file.guard != Guard::Lease) {
            update_size_from_kernel(file);  // another process may have appended
        }
        bytes =
            static_cast<std::size_t>(std::clamp<std::int64_t>(file.size - start, 0, static_cast<std::int64_t>(bytes)));
    }
    ssize_t total = 0;
    bool hit = true;
    bool sleep = false;
    if (bytes > 0) {
        const std::int64_t end = start + static_cast<std::int64_t>(bytes);
        const AccessForecast forecast = classify_access(file, description.stream, start, end);
        queue_read_ahead(file, description.stream, forecast, start, end);
        for (std::size_t i = 0; i < number && static_cast<std::size_t>(total) < bytes; ++i) {
            const std::size_t part = std::min(parts[i].bytes, bytes - static_cast<std::size_t>(total));
            const ssize_t result =
                part > 0 ? read_through_pages(file, forecast, parts[i].data, part, start + total, hit) : 0;
            if (result < 0 && total == 0) {
                total = result;
            }
            total += result > 0 && total >= 0 ? result : 0;
            if (result != static_cast<ssize_t>(part)) {
                break;
            }
        }
        file.statistics.read.hits += hit ? 1 : 0;
        sleep = count_call(file, hit || bytes >= file.pages.page_size);
    }
    return finish_buffered_call(call, start, total, sleep);
}

CallResult write(int fd, const IoPart* parts, std::size_t number, std::int64_t offset) noexcept {
    const system::Critical critical;
    Call call{.fd = fd,
              .writes = true,
              .moves_offset = offset == current_offset,
              .offset = offset,
              .result = {false, nullptr, 0, 1}};
    if (!enter_buffered_call(call)) {
        return call.result;
    }
    File& file = *call.file;
    Description& description = *call.description;
    const std::size_t bytes = sum_part_bytes(parts, number);
    const std::int64_t position = offset == current_offset ? description.offset : offset;
    const std::int64_t start = description.appends ? file.size : position;
    const std::int64_t end = start + static_cast<std::int64_t>(bytes);
    if (!description.writes || must_kernel_do_call(parts, number, bytes, std::max(start, position)) ||
        static_cast<std::uint64_t>(end) > state.file_size_limit.load(std::memory_order_relaxed)) {
        return suspend_and_pass_call(call, 1);
    }
    count_transfer(file.statistics.write, description.stream, start, bytes);
    int earlier = 0;
    ssize_t total = 0;
    bool hit = true;
    if (consume_error(file, description, earlier)) {
        total = -earlier;
    } else {
        file.accepted_since_check += bytes;
        if (file.accepted_since_check >= space_check_bytes || file.space_checked_ns == 0) {
            file.space_checked_ns = 0;
            check_space(file);
        }
        const AccessForecast forecast = classify_access(file, description.stream, start, end);
        for (std::size_t i = 0; i < number; ++i) {
            const ssize_t result = parts[i].bytes > 0 ? write_through_pages(file, forecast, parts[i].data,
                                                                            parts[i].bytes, start + total, hit)
                                                      : 0;
            if (result < 0) {
                total = total == 0 ? result : total;
                break;
            }
            total += result;
            if (static_cast<std::size_t>(result) < parts[i].bytes) {
                break;
            }
        }
        if (total < 0) {
            consume_error(file, description, earlier);  // this call reports it
        }
    }
    file.statistics.write.hits += hit ? 1 : 0;
    const bool sleep = count_call(file, hit || bytes >= file.pages.page_size);
    return finish_buffered_call(call, start, total, sleep);
}

CallResult seek(int fd, std::int64_t offset, int whence) noexcept {
    const system::Critical critical;
    Call call{.fd = fd, .writes = false, .moves_offset = true};
    if (!enter_buffered_call(call)) {
        return call.result;
    }
    File& file = *call.file;
    Description& description = *call.description;
    if (whence == SEEK_END && file.guard != Guard::Lease) {
        update_size_from_kernel(file);
    }
    const std::int64_t base = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? description.offset : file.size;
    if (whence != SEEK_SET && whence != SEEK_CUR && whence != SEEK_END) {
        return suspend_and_pass_call(call, 1);  // data and holes are the kernel's to know
    }
    std::int64_t target = 0;
    ssize_t result = -EINVAL;
    if (!__builtin_add_overflow(base, offset, &target) && target >= 0) {
        if (target > largest_buffered_offset) {
            return suspend_and_pass_call(call, 1);
        }
        description.offset = target;
        result = target;
    }
    ++file.statistics.seeks;
    leave_buffered_call(call);
    file.lock.unlock();
    return {true, nullptr, result};
}

}  // namespace sonde::buffer
