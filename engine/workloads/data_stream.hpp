// SPDX-License-Identifier: Apache-2.0
// The stream that reads and writes data. data_stream.cpp has what happens file by file, moving.cpp the hot loops.
#pragma once

#include "workloads/buffers.hpp"
#include "workloads/timed_stream.hpp"

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
          buffers_(std::move(buffers)) {}

 private:
    using Base = TimedStream<Time>;
    using Base::bytes_, Base::channel_, Base::control_, Base::done_, Base::fail, Base::failed_, Base::job_,
        Base::meter_;
    using Base::now, Base::paused_, Base::phase_ns, Base::place, Base::report, Base::slices_, Base::target_,
        Base::time_;
    using Base::told_to_stop;

    enum class End { finished, limit, stop };

    bool run_pass(std::uint64_t pass) override;
    bool run_file(const FileJob& file, std::uint64_t pass);
    bool open(const FileJob& file, std::uint64_t pass);
    bool move(const FileJob& file, std::uint64_t pass);
    bool sync_and_close(const FileJob& file, bool more);
    End move_one_by_one(const FileJob& file, std::uint64_t from, std::uint64_t to, std::uint64_t pass);
    /// Operations that are all writes of plain content, or all reads that nobody checks, have a loop of their own.
    enum class Kind { plain_writes, plain_reads, any };
    template <Kind kind>
    End one_by_one(const FileJob& file, std::uint64_t from, std::uint64_t to, std::uint64_t pass);
    End move_queued(const FileJob& file, std::uint64_t from, std::uint64_t to, std::uint64_t pass);

    void choose(std::span<patterns::Entry> batch, const FileJob& file, std::uint64_t first,
                std::uint64_t pass) const noexcept;
    std::uint64_t idle(plan::Nanoseconds length) const noexcept;
    std::int64_t finish_short(const backends::Operation& operation, std::int64_t moved) noexcept;
    void account(bool write, std::uint64_t from, std::uint64_t to) noexcept;
    void settle_all() noexcept;
    void verify(const FileJob& file, std::uint64_t index, const backends::Operation& operation, std::int64_t got);

    /// Counted since the last settle_all(), by read and write: one line of memory.
    struct alignas(64) Tally {
        std::uint64_t operations[2] = {0, 0}, sum_ns[2] = {0, 0}, min_ns[2] = {never, never}, max_ns[2] = {0, 0};
    };
    Tally tally_;
    std::size_t depth_;
    std::uint32_t length_;
    std::unique_ptr<Buffers> buffers_;
};

}  // namespace sonde::workloads
