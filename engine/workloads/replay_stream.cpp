// SPDX-License-Identifier: Apache-2.0
#include "workloads/replay_stream.hpp"

#include <time.h>
#include <algorithm>
#include <array>
#include <cerrno>

namespace sonde::workloads {

using backends::IoRequest;
using patterns::ListedOperation;
using patterns::ReplayCall;

namespace {

/// In the order of ReplayCall.
struct CallName {
    unsigned kind;     ///< of its latency
    const char* text;  ///< in messages
};
constexpr std::array<CallName, patterns::operation_kinds> call_names{
    CallName{meters::kind_read, "read"},    CallName{meters::kind_write, "write"}, CallName{meters::kind_open, "open"},
    CallName{meters::kind_fsync, "fsync"},  CallName{meters::kind_close, "close"}, CallName{meters::kind_stat, "stat"},
    CallName{meters::kind_remove, "remove"}};

constexpr const CallName& get_call_name(ReplayCall kind) {
    return call_names[static_cast<std::size_t>(kind)];
}

}  // namespace

template <class Time>
ReplayStream<Time>::ReplayStream(const StreamJob& job, ranks::Team& team, const meters::Clock& clock,
                                 meters::StreamMeter& meter, std::unique_ptr<backends::Channel> channel,
                                 std::unique_ptr<Buffers> buffers)
    : TimedStream<Time>(job, team, clock, meter, std::move(channel)),
      list_(*job.replay),
      files_(job.file_count),
      buffers_(std::move(buffers)) {
    for (const ListedOperation& operation : list_.operations) {
        backends::OpenRequest& request = files_[operation.file];
        if (request.path.empty()) {
            job.set_path(operation.file, request.path);
            request.no_follow = true;
            request.root = job.root;
            request.relative_path_begin = job.relative_path_begin;
        }
        // Before the clock runs: a histogram that is used for the first time is emptied.
        meter.histogram(get_call_name(operation.kind).kind).touch_pages();
    }
}

/// Sleeps, and spins through the end, because a sleep ends late by tens of microseconds.
template <class Time>
void ReplayStream<Time>::wait_think_time(std::uint64_t ns) noexcept {
    if (this->channel_->advance_virtual_time(static_cast<std::int64_t>(ns))) {
        return;
    }
    constexpr std::uint64_t spin_ns = 100'000;
    constexpr std::uint64_t longest_sleep_ns = 100'000'000;
    const std::uint64_t until = this->now() + this->time_.ticks_of(ns);
    const std::uint64_t end_of_sleep = until - std::min(until, this->time_.ticks_of(spin_ns));
    for (std::uint64_t time = this->now(); time < end_of_sleep && !this->should_stop(); time = this->now()) {
        const std::uint64_t left_ns = std::min(longest_sleep_ns, this->time_.duration_ns(end_of_sleep - time));
        const timespec length{0, static_cast<long>(left_ns)};
        ::nanosleep(&length, nullptr);
    }
    while (this->now() < until && !this->job_.backend->traits.supports_virtual_time && !this->should_stop()) {
    }
}

/// Continues a call that moved less than asked; a read of zero bytes looks for the end of the file.
template <class Time>
std::int64_t ReplayStream<Time>::transfer(const ListedOperation& operation, std::byte* buffer) noexcept {
    IoRequest request;
    request.file_index = operation.handle;
    request.is_write = operation.kind == ReplayCall::write;
    std::uint32_t done = 0;
    do {
        request.offset = operation.offset + done;
        request.buffer = buffer + done;
        request.length = operation.length - done;
        const std::int64_t moved = this->channel_->transfer(request);
        if (moved < 0) {
            return moved;
        }
        if (moved == 0 && operation.length > 0) {
            return request.is_write ? -EIO : -ENODATA;
        }
        done += static_cast<std::uint32_t>(moved);
        this->meter_.short_operations += done < operation.length && done == moved ? 1 : 0;
    } while (done < operation.length);
    return done;
}

template <class Time>
std::int64_t ReplayStream<Time>::execute_call(const ListedOperation& operation) noexcept {
    backends::OpenRequest& file = files_[operation.file];
    switch (operation.kind) {
        case ReplayCall::read:
            return transfer(operation, buffers_->read_buffer(0));
        case ReplayCall::write:
            return transfer(operation, write_data_);
        case ReplayCall::open:
            file.read = (operation.flags & patterns::open_reads) != 0;
            file.write = (operation.flags & patterns::open_writes) != 0;
            file.create = (operation.flags & patterns::open_creates) != 0;
            file.truncate = (operation.flags & patterns::open_truncates) != 0;
            return this->channel_->open(operation.handle, file);
        case ReplayCall::fsync:
            return this->channel_->fsync(operation.handle);
        case ReplayCall::close:
            return this->channel_->close(operation.handle);
        case ReplayCall::stat:
        case ReplayCall::remove:
            break;
    }
    const char* const name = file.path.c_str() + std::min(this->job_.relative_path_begin, file.path.size());
    return operation.kind == ReplayCall::stat ? this->channel_->stat(this->job_.root, name)
                                              : this->channel_->remove(this->job_.root, name);
}

template <class Time>
bool ReplayStream<Time>::run_operation(const ListedOperation& operation) {
    const bool moves = operation.kind == ReplayCall::read || operation.kind == ReplayCall::write;
    if (operation.kind == ReplayCall::write) {
        write_data_ = buffers_->image(0).content_at(operation.offset, operation.length);
    }
    const std::uint64_t from = this->now();
    const std::int64_t result = execute_call(operation);
    const std::uint64_t to = this->now();
    if (result < 0) [[unlikely]] {
        this->publish_counts();
        this->fail_operation(files_[operation.file].path, get_call_name(operation.kind).text, static_cast<int>(-result),
                             operation.offset);
        return false;
    }
    const unsigned kind = get_call_name(operation.kind).kind;
    const std::uint32_t length = moves ? operation.length : 0;
    this->meter_.histogram(kind).add(this->time_.duration_ns(to - from));
    ++this->operations_done_;
    this->bytes_done_ += length;
    if (moves) {
        this->meter_.bytes[kind] += length;
        ++this->meter_.operations[kind];
    } else {
        ++this->meter_.file_operations;
    }
    return !this->count_operation(from, to, length) && !this->should_stop();
}

template <class Time>
bool ReplayStream<Time>::run_pass(std::uint64_t /*pass*/) {
    const std::uint64_t from = this->now();
    const bool thinks = this->job_.phase->think_time == plan::ThinkTime::as_traced;
    bool succeeded = true;
    for (const ListedOperation& operation : list_.operations) {
        if (thinks && operation.think_ns > 0) {
            wait_think_time(operation.think_ns);
        }
        if (!run_operation(operation)) {
            succeeded = this->operations_done_ == list_.operations.size();
            break;
        }
    }
    this->publish_counts();
    this->meter_.next_operation = this->operations_done_;
    this->meter_.parts_of_work[meters::part_transfer].add(this->ns_since_phase_start(from),
                                                          this->ns_since_phase_start(this->now()));
    return succeeded && !this->failed_;
}

template class ReplayStream<MachineClock>;
template class ReplayStream<ChannelClock>;

}  // namespace sonde::workloads
