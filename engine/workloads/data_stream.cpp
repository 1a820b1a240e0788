// SPDX-License-Identifier: Apache-2.0
// A stream's way through its files: open, move, make durable, close.
#include "workloads/data_stream.hpp"

#include <algorithm>

namespace sonde::workloads {

/// One pass over all files of the stream. False when the stream is to end.
template <class Time>
bool DataStream<Time>::run_pass(std::uint64_t pass) {
    for (std::uint64_t k = 0; k < job_.file_count; ++k) {
        try {
            if (!run_file(job_.make_file_job(k), pass)) {
                return false;
            }
        } catch (const std::exception& error) {
            this->fail_preparation(error.what());
            return false;
        }
    }
    return true;
}

template <class Time>
bool DataStream<Time>::run_file(const FileJob& file, std::uint64_t pass) {
    const bool reopen = job_.file_count > 1;
    if ((pass == 0 || reopen) && !open(file, pass)) {
        return false;
    }
    if (!this->wait_at_intra_barrier()) {
        return false;
    }
    const bool is_complete = transfer_operations(file, pass);
    const bool more = is_complete && !reopen && this->needs_another_pass();
    if (!more && !this->wait_at_intra_barrier()) {
        return false;
    }
    const bool closed = sync_and_close(file, more);
    if (is_complete && closed && pass == 0) {
        ++meter_.completed_files;
    }
    return is_complete && closed;
}

template <class Time>
bool DataStream<Time>::open(const FileJob& file, std::uint64_t pass) {
    backends::OpenRequest request;
    request.path = file.path;
    request.write = job_.writes;
    request.read = job_.reads;
    request.create = file.create;
    request.truncate = file.truncate && pass == 0;
    request.exclusive = file.exclusive && pass == 0;
    request.no_follow = file.no_follow;
    request.root = job_.root;
    request.relative_path_begin = job_.relative_path_begin;
    request.device = job_.device_number;
    request.size = file.complete_size;
    request.blocks = {file.geometry.first_block_offset(), file.geometry.bytes_per_block(),
                      file.geometry.block_distance()};
    if (!this->open_file(request)) {
        return false;
    }
    if (job_.writes) {
        buffers_->set_origin({file.file_number, job_.generation, static_cast<std::uint32_t>(file.owner)});
    }
    if (job_.query_stripes && !file.geometry.has_sizes()) {
        query_layout(file);
    }
    return true;
}

/// Asks the file system which storage target holds each byte of the file that was just opened. A stream asks for its
/// first eight files, and then as long as that has taken at most half a percent of its time. No latency includes it.
template <class Time>
void DataStream<Time>::query_layout(const FileJob& file) {
    constexpr std::uint64_t always = 8, share = 200;
    current_target_counter_ = nullptr;
    ++files_opened_;
    const std::uint64_t from = now();
    if (layouts_queried_ >= always && layout_query_ticks_ * share > from - this->phase_start_tick()) {
        return;
    }
    ++layouts_queried_;
    if (const patterns::FileStripes stripes = job_.query_stripes(file.path); !stripes.empty()) {
        if (!target_counter_) {
            target_meter_ = job_.target_meter ? job_.target_meter
                                              : std::make_shared<meters::TargetMeter>(
                                                    this->phase_start_tick(),
                                                    time_.ticks_of(static_cast<std::uint64_t>(job_.slice_ns)));
            target_counter_ = std::make_unique<TargetCounter>(job_.query_stripes, target_meter_, length_);
        }
        target_counter_->set_file(file.path, stripes);
        current_target_counter_ = target_counter_.get();
        layouts_known_ += std::any_of(stripes.begin(), stripes.end(),
                                      [](const patterns::StripePart& part) { return !part.targets.empty(); });
    }
    layout_query_ticks_ += now() - from;
}

/// Which targets served operations that followed one another, the first from `begin`.
template <class Time>
void DataStream<Time>::count_targets(unsigned kind, const std::uint64_t* offsets, std::uint64_t begin,
                                     std::span<const std::uint64_t> ends) noexcept {
    const Time time = time_;
    current_target_counter_->add_consecutive(kind, offsets, begin, ends,
                                             [time](std::uint64_t ticks) { return time.duration_ns(ticks); });
}

/// The operations of one file. True when all that were asked are done.
template <class Time>
bool DataStream<Time>::transfer_operations(const FileJob& file, std::uint64_t pass) {
    const std::uint64_t from = now();
    std::uint64_t next = 0;
    LoopEnd end = LoopEnd::finished;
    while (next < file.operation_count) {
        const std::uint64_t before = operations_done_;
        const std::uint64_t to = next + std::min(file.operation_count - next, wearout_target_ - operations_done_);
        end = depth_ > 1 ? run_queued_loop(file, next, to, pass) : run_synchronous_loop(file, next, to, pass);
        publish_all_counts();
        next += operations_done_ - before;
        if (end == LoopEnd::deadline && this->must_wear_out()) {
            this->continue_to_wearout_target();
            end = LoopEnd::finished;
        }
        if (end != LoopEnd::finished || operations_done_ >= wearout_target_) {
            break;
        }
    }
    if (pass == 0) {
        meter_.next_operation += next;
    }
    if (job_.writes && job_.phase->data.io.fsync == plan::Fsync::end && !failed_) {
        const std::uint64_t sync_from = now();
        const int result = channel_->fsync(0);
        meter_.histogram(meters::kind_fsync).add(time_.duration_ns(now() - sync_from));
        if (result < 0) {
            fail_operation(file.path, "fsync", -result, 0);
        }
    }
    meter_.parts_of_work[meters::part_transfer].add(ns_since_phase_start(from), ns_since_phase_start(now()));
    return end == LoopEnd::finished && next == file.operation_count && !failed_;
}

template <class Time>
bool DataStream<Time>::sync_and_close(const FileJob& file, bool more) {
    if (more) {
        return true;
    }
    bool succeeded = true;
    if (job_.writes && job_.phase->data.io.fsync == plan::Fsync::end_timed_separately && !failed_) {
        const std::uint64_t from = now();
        const int result = channel_->fsync(0);
        const std::uint64_t to = now();
        meter_.parts_of_work[meters::part_fsync].add(ns_since_phase_start(from), ns_since_phase_start(to));
        meter_.histogram(meters::kind_fsync).add(time_.duration_ns(to - from));
        if (result < 0) {
            fail_operation(file.path, "fsync", -result, 0);
            succeeded = false;
        }
    }
    return this->close_file(file.path) && succeeded;
}

template class DataStream<MachineClock>;
template class DataStream<ChannelClock>;

}  // namespace sonde::workloads
