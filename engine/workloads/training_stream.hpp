// SPDX-License-Identifier: Apache-2.0
// Training input: reads the samples of batches in a shuffled order while an emulated accelerator computes. Reading runs
// ahead of it by `training.prefetch` batches at most.
#pragma once

#include "workloads/accelerator.hpp"
#include "workloads/buffers.hpp"
#include "workloads/timed_stream.hpp"
#include "workloads/training_job.hpp"

#include <optional>
#include <vector>

namespace sonde::workloads {

template <class Time>
class TrainingStream final : public TimedStream<Time> {
 public:
    TrainingStream(const StreamJob& job, ranks::Team& team, const meters::Clock& clock, meters::StreamMeter& meter,
                   std::unique_ptr<backends::Channel> channel, std::unique_ptr<Buffers> buffers);
    ~TrainingStream() override { channel_.reset(); }  // it may have registered the buffers

 private:
    using Base = TimedStream<Time>;
    using Base::channel_, Base::job_, Base::meter_, Base::now, Base::ns_since_phase_start, Base::time_;

    /// A transfer of the sample that is being read.
    struct Transfer {
        backends::IoRequest request;
        std::uint64_t start = 0;
        std::uint32_t moved = 0;
    };

    bool run_pass(std::uint64_t pass) override;
    bool read_batch(const patterns::SampleOrder& order, std::uint64_t first, std::uint64_t end);
    bool read_sample(const patterns::SampleLocation& sample);
    bool open_file_of(const patterns::SampleLocation& sample);
    bool close_current_file();
    bool read_samples_one_by_one(std::uint64_t first);
    bool read_samples_queued(std::uint64_t first);
    backends::IoRequest make_request(std::uint64_t operation, std::size_t slot) const;
    bool finish_transfer(const Transfer& transfer, std::int64_t moved, std::uint64_t ended);
    void count_epoch(const Accelerator& accelerator, std::uint64_t samples, std::uint64_t began);

    const plan::Training& training_;
    const TrainingJob& training_job_;
    std::unique_ptr<Buffers> buffers_;
    std::size_t depth_;
    std::uint64_t transfers_;                  ///< of a sample
    std::optional<FileJob> file_;              ///< the open file
    patterns::SampleLocation open_sample_;     ///< the sample for which it was opened
    std::vector<Transfer> slots_;              ///< of the queue
    std::vector<std::size_t> free_slots_;      ///< those without a transfer
    std::vector<backends::Completion> ended_;  ///< as the channel returned them last
    bool is_deadline_passed_ = false;
};

extern template class TrainingStream<MachineClock>;
extern template class TrainingStream<ChannelClock>;

}  // namespace sonde::workloads
