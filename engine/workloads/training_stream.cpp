// SPDX-License-Identifier: Apache-2.0
#include "workloads/training_stream.hpp"

#include <cerrno>

namespace sonde::workloads {

using backends::IoRequest;
using patterns::SampleLocation;

template <class Time>
TrainingStream<Time>::TrainingStream(const StreamJob& job, ranks::Team& team, const meters::Clock& clock,
                                     meters::StreamMeter& meter, std::unique_ptr<backends::Channel> channel,
                                     std::unique_ptr<Buffers> buffers)
    : TimedStream<Time>(job, team, clock, meter, std::move(channel)),
      training_(*job.phase->training),
      training_job_(*job.training),
      buffers_(std::move(buffers)),
      depth_(static_cast<std::size_t>(job.phase->data.io.queue_depth)),
      transfers_(job.phase->data.access.block / job.phase->data.access.transfer),
      slots_(depth_),
      ended_(depth_) {
    free_slots_.reserve(depth_);
    for (std::size_t slot = depth_; slot-- > 0;) {
        free_slots_.push_back(slot);
    }
}

/// One epoch.
template <class Time>
bool TrainingStream<Time>::run_pass(std::uint64_t pass) {
    const patterns::SampleOrder order = training_job_.order(pass);
    const std::uint64_t all = training_job_.training_set.per_task();
    Accelerator accelerator(time_.ticks_of(static_cast<std::uint64_t>(training_.compute_time)), training_.prefetch);
    const std::uint64_t began = now();
    std::uint64_t next = 0;
    bool succeeded = true;
    while (succeeded && next < all) {
        const std::uint64_t end = std::min(all, next + training_.batch_size);
        succeeded = this->wait_until(accelerator.next_read_time()) && read_batch(order, next, end);
        if (succeeded) {
            accelerator.add_batch(now());
            next = end;
        }
    }
    succeeded = close_current_file() && succeeded;
    succeeded = succeeded && this->wait_until(accelerator.last_computation_end());
    count_epoch(accelerator, next, began);
    if (pass == 0) {
        meter_.next_operation = next * transfers_;
    }
    this->publish_counts();
    return succeeded && next == all;
}

template <class Time>
void TrainingStream<Time>::count_epoch(const Accelerator& accelerator, std::uint64_t samples, std::uint64_t began) {
    if (accelerator.batches() == 0) {
        return;
    }
    meters::TrainingMeter& meter = meter_.training;
    const std::uint64_t first_batch = std::min<std::uint64_t>(samples, training_.batch_size);
    if (meter.batches == 0) {
        meter.first_batch_ns = time_.duration_ns(accelerator.first_ready() - began);
    }
    meter.batches += accelerator.batches();
    meter.samples += samples;
    meter.rated_samples += samples - first_batch;
    meter.computation_ns += time_.duration_ns(accelerator.computation_duration());
    meter.steps_ns += time_.duration_ns(accelerator.steps_duration());
}

template <class Time>
bool TrainingStream<Time>::read_batch(const patterns::SampleOrder& order, std::uint64_t first, std::uint64_t end) {
    for (std::uint64_t i = first; i < end; ++i) {
        if (!read_sample(order.locate(static_cast<std::uint64_t>(job_.task), i))) {
            return false;
        }
    }
    return true;
}

template <class Time>
bool TrainingStream<Time>::read_sample(const SampleLocation& sample) {
    try {
        if (!open_file_of(sample)) {
            return false;
        }
    } catch (const std::exception& error) {
        this->fail_preparation(error.what());
        return false;
    }
    const std::uint64_t from = now();
    const std::uint64_t first = sample.block * transfers_;
    const bool succeeded = depth_ > 1 ? read_samples_queued(first) : read_samples_one_by_one(first);
    meter_.parts_of_work[meters::part_transfer].add(ns_since_phase_start(from), ns_since_phase_start(now()));
    return succeeded && !is_deadline_passed_ && !this->should_stop();
}

/// Opens the file of a sample, unless it is the one that is open.
template <class Time>
bool TrainingStream<Time>::open_file_of(const SampleLocation& sample) {
    if (file_ && open_sample_.owner == sample.owner && open_sample_.file == sample.file) {
        return true;
    }
    FileJob file = training_job_.make_file_job(sample.owner, sample.file);
    open_sample_ = sample;
    if (file_ && file_->path == file.path) {
        file_ = std::move(file);  // another task's part of the same file
        return true;
    }
    if (!close_current_file()) {
        return false;
    }
    backends::OpenRequest request;
    request.path = file.path;
    request.root = job_.root;
    request.relative_path_begin = job_.relative_path_begin;
    request.size = file.complete_size;
    if (!Base::open_file(request)) {
        return false;
    }
    file_ = std::move(file);
    return true;
}

template <class Time>
bool TrainingStream<Time>::close_current_file() {
    if (!file_) {
        return true;
    }
    const bool succeeded = Base::close_file(file_->path);
    file_.reset();
    return succeeded;
}

template <class Time>
IoRequest TrainingStream<Time>::make_request(std::uint64_t operation, std::size_t slot) const {
    IoRequest request;
    request.offset = file_->geometry.offset_of(operation);
    request.buffer = buffers_->read_buffer(slot);
    request.length = static_cast<std::uint32_t>(file_->geometry.transfer_bytes());
    request.slot = static_cast<std::uint32_t>(slot);
    return request;
}

/// Counts a transfer that is over: `moved` bytes in all, or -errno.
template <class Time>
bool TrainingStream<Time>::finish_transfer(const Transfer& transfer, std::int64_t moved, std::uint64_t ended) {
    const std::uint32_t length = transfer.request.length;
    if (moved < length) [[unlikely]] {
        this->publish_counts();
        this->fail_operation(file_->path, "read", errno_of_transfer(moved, false), transfer.request.offset);
        return false;
    }
    meter_.histogram(meters::kind_read).add(time_.duration_ns(ended - transfer.start));
    ++meter_.operations[meters::kind_read];
    meter_.bytes[meters::kind_read] += length;
    ++this->operations_done_;
    this->bytes_done_ += length;
    is_deadline_passed_ = this->count_operation(transfer.start, ended, length) || is_deadline_passed_;
    return true;
}

template <class Time>
bool TrainingStream<Time>::read_samples_one_by_one(std::uint64_t first) {
    for (std::uint64_t operation = first; operation < first + transfers_; ++operation) {
        const Transfer transfer{make_request(operation, 0), now(), 0};
        const std::int64_t moved =
            this->continue_short_transfer(transfer.request, channel_->transfer(transfer.request));
        if (!finish_transfer(transfer, moved, now())) {
            return false;
        }
        if (is_deadline_passed_ || this->should_stop()) {
            return true;  // the caller ends
        }
    }
    return true;
}

template <class Time>
bool TrainingStream<Time>::read_samples_queued(std::uint64_t first) {
    const std::uint64_t last = first + transfers_;
    std::uint64_t next = first;
    bool succeeded = true;
    while ((succeeded && next < last) ||
           free_slots_.size() < depth_) {  // after a failure, what is in flight is waited for
        for (; succeeded && next < last && !free_slots_.empty(); ++next) {
            const std::size_t slot = free_slots_.back();
            slots_[slot] = {make_request(next, slot), now(), 0};
            free_slots_.pop_back();
            if (!channel_->submit(slots_[slot].request)) {
                this->fail_operation(file_->path, "submit", EAGAIN, slots_[slot].request.offset);
                return false;
            }
        }
        const std::size_t count = channel_->reap(ended_);
        if (count == 0) {
            this->fail_operation(file_->path, "wait for completions", EIO, 0);
            return false;
        }
        const std::uint64_t ended = now();
        for (std::size_t k = 0; k < count; ++k) {
            Transfer& transfer = slots_[ended_[k].slot];
            const std::int64_t result = ended_[k].result;
            transfer.moved += result > 0 ? static_cast<std::uint32_t>(result) : 0;
            if (result > 0 && transfer.moved < transfer.request.length && succeeded) {
                ++meter_.short_operations;
                if (channel_->submit(remaining_part(transfer.request, transfer.moved))) {
                    continue;
                }
            }
            free_slots_.push_back(ended_[k].slot);
            succeeded = succeeded && finish_transfer(transfer, result < 0 ? result : transfer.moved, ended);
        }
    }
    return succeeded;
}

template class TrainingStream<MachineClock>;
template class TrainingStream<ChannelClock>;

}  // namespace sonde::workloads
