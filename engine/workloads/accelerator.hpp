// SPDX-License-Identifier: Apache-2.0
// An emulated accelerator: it takes batches from a queue and computes a fixed time with each. Nothing computes; when it
// would be busy follows from when batches became ready. All times are ticks of one clock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace sonde::workloads {

class Accelerator {
 public:
    /// `prefetch` batches, at least 1, are in the queue or being read at most.
    Accelerator(std::uint64_t compute, std::uint64_t prefetch) : compute_(compute), starts_(prefetch) {}

    /// From when on the next batch may be read: when the accelerator takes the batch that was `prefetch` before it.
    std::uint64_t next_read_time() const noexcept {
        return batches_ < starts_.size() ? 0 : starts_[batches_ % starts_.size()];
    }
    /// The next batch is ready. The accelerator takes it when it is ready and the earlier ones are done.
    void add_batch(std::uint64_t ready) noexcept {
        const std::uint64_t start = std::max(ready, end_);
        starts_[batches_ % starts_.size()] = start;
        end_ = start + compute_;
        if (batches_ == 0) {
            first_ready_ = ready;
            first_end_ = end_;
        }
        ++batches_;
    }

    std::uint64_t batches() const noexcept { return batches_; }
    std::uint64_t last_computation_end() const noexcept { return end_; }  ///< of the last computation
    std::uint64_t first_ready() const noexcept { return first_ready_; }
    /// Time of all steps without the first, and how much of it was computation: DLIO's accelerator utilization is
    /// computation / steps (argonne-lcf/dlio_benchmark 03b5ed32, dlio_benchmark/utils/statscounter.py,
    /// compute_metrics_train, with metric_exclude_start_steps = 1).
    std::uint64_t steps_duration() const noexcept { return end_ - first_end_; }
    std::uint64_t computation_duration() const noexcept { return batches_ == 0 ? 0 : (batches_ - 1) * compute_; }

 private:
    std::uint64_t compute_;
    std::vector<std::uint64_t> starts_;  ///< when the last `prefetch` batches were taken
    std::uint64_t batches_ = 0, end_ = 0, first_ready_ = 0, first_end_ = 0;
};

}  // namespace sonde::workloads
