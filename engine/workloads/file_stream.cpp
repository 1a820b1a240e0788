// SPDX-License-Identifier: Apache-2.0
#include "workloads/file_stream.hpp"

#include <algorithm>
#include <array>

namespace sonde::workloads {

/// Operations `next` … to-1, in batches whose names are made outside the latencies. False when the stream is to end.
template <class Time>
bool FileStream<Time>::run_batch(std::uint64_t& next, std::uint64_t to) {
    const bool removes = this->job_.phase->op == plan::Op::remove;
    const unsigned kind = removes ? meters::kind_remove : meters::kind_stat;
    std::array<std::string, 64> names;
    while (next < to) {
        const std::size_t count = std::min<std::uint64_t>(names.size(), to - next);
        for (std::size_t k = 0; k < count; ++k) {
            this->job_.set_path(next + k, names[k]);
        }
        std::uint64_t last = this->now();
        for (std::size_t k = 0; k < count; ++k) {
            const char* const name = names[k].c_str() + std::min(this->job_.relative_path_begin, names[k].size());
            const int result =
                removes ? this->channel_->remove(this->job_.root, name) : this->channel_->stat(this->job_.root, name);
            const std::uint64_t end = this->now();
            if (result < 0) [[unlikely]] {
                this->publish_counts();
                this->fail_operation(names[k], removes ? "remove" : "stat", -result, 0);
                return false;
            }
            this->meter_.histogram(kind).add(this->time_.duration_ns(end - last));
            ++this->meter_.file_operations;
            ++this->operations_done_;
            ++next;
            const bool passed = this->count_operation(last, end, 0);
            last = end;
            if (passed || this->should_stop()) {
                this->publish_counts();
                return false;
            }
        }
        this->publish_counts();
    }
    return true;
}

template <class Time>
bool FileStream<Time>::run_pass(std::uint64_t pass) {
    const std::uint64_t from = this->now();
    std::uint64_t next = 0;
    bool succeeded = true;
    while (succeeded && next < this->job_.file_count && this->operations_done_ < this->wearout_target_) {
        const std::uint64_t remaining = this->wearout_target_ - this->operations_done_;
        succeeded = run_batch(next, next + std::min(this->job_.file_count - next, remaining));
        if (!succeeded && !this->failed_ && !this->should_stop() && this->must_wear_out()) {
            this->continue_to_wearout_target();
            succeeded = true;
        }
    }
    if (pass == 0) {
        this->meter_.next_operation = next;
        this->meter_.completed_files = next;
    }
    this->meter_.parts_of_work[meters::part_transfer].add(this->ns_since_phase_start(from),
                                                          this->ns_since_phase_start(this->now()));
    return succeeded && next == this->job_.file_count;
}

template class FileStream<MachineClock>;
template class FileStream<ChannelClock>;

}  // namespace sonde::workloads
