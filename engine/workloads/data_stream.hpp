// SPDX-License-Identifier: Apache-2.0
// The stream that reads and writes data. data_stream.cpp has what happens file by file, moving.cpp and plain_moves.cpp
// the loops over operations.
#pragma once

#include "payload/compare.hpp"
#include "workloads/buffers.hpp"
#include "workloads/pacer.hpp"
#include "workloads/timed_stream.hpp"

#include <optional>
#include <span>

namespace sonde::workloads {

template <class Time>
class DataStream final : public TimedStream<Time> {
 public:
    DataStream(const StreamJob& job, ranks::Team& team, const meters::Clock& clock, meters::StreamMeter& meter,
               std::unique_ptr<backends::Channel> channel, std::unique_ptr<Buffers> buffers)
        : TimedStream<Time>(job, team, clock, meter, std::move(channel)),
          depth_(static_cast<std::size_t>(job.phase->data.io.queue_depth)),
          length_(static_cast<std::uint32_t>(job.phase->data.access.transfer)),
          buffers_(std::move(buffers)) {
        pacer_ = Pacer(job.phase->data.io,
                       [this](double seconds) { return seconds * static_cast<double>(time_.ticks_of(1'000'000'000)); });
        for (const meters::CallKind kind : {meters::kind_read, meters::kind_write}) {
            if (kind == meters::kind_read ? job.reads : job.writes) {
                histogram_[kind] = &meter.histogram(kind);
                histogram_[kind]->touch_pages();
            }
        }
    }

    ~DataStream() override { channel_.reset(); }  // it may have registered the buffers

    meters::TargetsServed targets() const override { return {target_meter_.get(), files_opened_, layouts_known_}; }

 private:
    using Base = TimedStream<Time>;
    using Base::bytes_done_, Base::channel_, Base::control_, Base::operations_done_, Base::fail_operation,
        Base::failed_, Base::job_, Base::meter_;
    using Base::continue_short_transfer, Base::should_stop;
    using Base::now, Base::paused_ticks_, Base::ns_since_phase_start, Base::count_operation, Base::report_error,
        Base::slices_, Base::wearout_target_, Base::time_;

    enum class LoopEnd { finished, deadline, stop };

    bool run_pass(std::uint64_t pass) override;
    bool run_file(const FileJob& file, std::uint64_t pass);
    bool open(const FileJob& file, std::uint64_t pass);
    bool transfer_operations(const FileJob& file, std::uint64_t pass);
    bool sync_and_close(const FileJob& file, bool more);
    LoopEnd run_synchronous_loop(const FileJob& file, std::uint64_t from, std::uint64_t to, std::uint64_t pass);
    LoopEnd run_general_loop(const FileJob& file, std::uint64_t from, std::uint64_t to, std::uint64_t pass);
    /// Operations that are all writes of plain content, or all reads that nobody checks.
    LoopEnd run_unchecked_read_loop(const FileJob& file, std::uint64_t from, std::uint64_t to, std::uint64_t pass);
    LoopEnd run_stamped_write_loop(const FileJob& file, std::uint64_t from, std::uint64_t to, std::uint64_t pass);
    template <bool write>
    LoopEnd choose_simple_loop(const FileJob& file, std::uint64_t from, std::uint64_t to, std::uint64_t pass);
    /// The same with everything decided: `IoPath` makes the calls and reads the clock, `Content` is where data lies.
    template <bool write, class IoPath, class Content>
    LoopEnd run_simple_loop(const IoPath& io_path, const Content& content, const FileJob& file, std::uint64_t from,
                            std::uint64_t to, std::uint64_t pass);
    void count_transfers(unsigned kind, const std::uint64_t* times, std::size_t count) noexcept;
    LoopEnd count_batch(unsigned kind, const std::uint64_t* times, std::size_t count, std::uint64_t event_at) noexcept;
    LoopEnd run_queued_loop(const FileJob& file, std::uint64_t from, std::uint64_t to, std::uint64_t pass);

    void query_layout(const FileJob& file);
    void count_targets(unsigned kind, const std::uint64_t* offsets, std::uint64_t begin,
                       std::span<const std::uint64_t> ends) noexcept;

    void choose_directions(std::span<bool> writes, const FileJob& file, std::uint64_t first,
                           std::uint64_t pass) const noexcept;
    void count_transfers(bool write, std::uint64_t from, std::uint64_t to, std::uint32_t length) noexcept;
    void publish_all_counts() noexcept;
    std::optional<payload::Mismatch> compare_with_later_generation(const FileJob& file,
                                                                   const backends::IoRequest& operation,
                                                                   std::uint64_t generation,
                                                                   std::uint64_t got) noexcept;
    void verify(const FileJob& file, std::uint64_t index, const backends::IoRequest& operation, std::int64_t got);

    /// Counted since the last publish_all_counts(), by read and write.
    struct alignas(64) UnpublishedCounts {
        std::uint64_t operations[2] = {0, 0}, bytes[2] = {0, 0}, sum_ns[2] = {0, 0}, min_ns[2] = {no_tick, no_tick},
                      max_ns[2] = {0, 0};
    };
    UnpublishedCounts unpublished_;
    meters::Histogram* histogram_[2] = {};  ///< by kind_read, kind_write; null when there are no such operations
    Pacer pacer_;
    std::size_t depth_;
    std::uint32_t length_;
    TargetCounter* current_target_counter_ = nullptr;  ///< of the open file; null: its layout is not known
    std::unique_ptr<TargetCounter> target_counter_;
    std::shared_ptr<meters::TargetMeter> target_meter_;
    std::uint64_t files_opened_ = 0, layouts_queried_ = 0, layouts_known_ = 0, layout_query_ticks_ = 0;
    std::unique_ptr<Buffers> buffers_;
};

}  // namespace sonde::workloads
