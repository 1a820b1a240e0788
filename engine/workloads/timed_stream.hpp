// SPDX-License-Identifier: Apache-2.0
// What every stream has in common whatever it does: its clock, its slices, when it must stop, and how it says that
// something failed. The clock is a template parameter, so that the hot loops contain no choice of clocks.
#pragma once

#include "meters/clock.hpp"
#include "plan/uint128.hpp"
#include "workloads/stream.hpp"

#include <algorithm>
#include <cerrno>
#include <limits>

namespace sonde::workloads {

/// errno of an operation that moved less than it should: a read met the end of the file, a write that moves nothing
/// although no error is reported is an error all the same.
inline int errno_of_transfer(std::int64_t moved, bool write) {
    if (moved < 0) {
        return static_cast<int>(-moved);
    }
    return write ? EIO : ENODATA;
}

/// The remaining part of an operation after `moved` bytes.
inline backends::IoRequest remaining_part(backends::IoRequest operation, std::uint32_t moved) noexcept {
    operation.offset += moved;
    operation.buffer += moved;
    operation.length -= moved;
    return operation;
}

constexpr std::uint64_t no_tick = std::numeric_limits<std::uint64_t>::max();

/// The machine's clock in counter ticks.
class MachineClock {
 public:
    static MachineClock from_channel(const meters::Clock& clock, const ranks::NodeControl& control,
                                     const backends::Channel&) {
        return {clock, control};
    }
    MachineClock(const meters::Clock& clock, const ranks::NodeControl& control)
        : clock_(clock), shared_clock_(clock), control_(control) {}
    /// The shared clock may have been refined since this stream was made.
    void refresh() noexcept { clock_ = shared_clock_; }
    std::uint64_t read_ticks() const noexcept { return clock_.ticks(); }
    /// read_ticks() is Clock::counter_ticks().
    bool uses_counter() const noexcept { return clock_.uses_counter; }
    std::uint64_t duration_ns(std::uint64_t ticks) const noexcept { return clock_.duration_ns(ticks); }
    std::uint64_t ticks_of(std::uint64_t ns) const noexcept { return clock_.ticks_of(ns); }
    /// Reading at the common start of the phase.
    std::uint64_t phase_start_tick() const noexcept {
        const std::int64_t start = control_.phase_start_ns.load(std::memory_order_relaxed);
        return clock_.base_ticks +
               clock_.ticks_of(static_cast<std::uint64_t>(std::max<std::int64_t>(0, start - clock_.base_ns)));
    }

 private:
    meters::Clock clock_;  ///< a copy: beside the other things that every operation touches
    const meters::Clock& shared_clock_;
    const ranks::NodeControl& control_;
};

/// The clock of a channel that keeps its own: one tick is one nanosecond.
class ChannelClock {
 public:
    static ChannelClock from_channel(const meters::Clock&, const ranks::NodeControl&,
                                     const backends::Channel& channel) {
        return ChannelClock(channel);
    }
    explicit ChannelClock(const backends::Channel& channel) : channel_(channel) {}
    static void refresh() noexcept {}
    std::uint64_t read_ticks() const noexcept { return static_cast<std::uint64_t>(channel_.virtual_time_ns()); }
    static std::uint64_t duration_ns(std::uint64_t ticks) noexcept { return ticks; }
    static std::uint64_t ticks_of(std::uint64_t ns) noexcept { return ns; }
    static std::uint64_t phase_start_tick() noexcept { return 0; }

 private:
    const backends::Channel& channel_;
};

template <class Time>
class TimedStream : public TaskStream {
 public:
    void run() final;
    std::vector<std::string> missing_features() const final { return channel_->missing_features(); }

 protected:
    TimedStream(const StreamJob& job, ranks::Team& team, const meters::Clock& clock, meters::StreamMeter& meter,
                std::unique_ptr<backends::Channel> channel)
        : job_(job),
          team_(team),
          control_(team.control()),
          meter_(meter),
          channel_(std::move(channel)),
          time_(Time::from_channel(clock, control_, *channel_)) {
        meter_.task = job.task;
    }

    /// One pass over the stream's files. False when the stream is to end.
    virtual bool run_pass(std::uint64_t pass) = 0;

    /// Time without what verification took: that is never part of a rate.
    std::uint64_t now() const noexcept { return time_.read_ticks() - paused_ticks_; }
    std::int64_t ns_since_phase_start(std::uint64_t tick) const noexcept {
        return tick <= phase_start_tick_ ? 0 : static_cast<std::int64_t>(time_.duration_ns(tick - phase_start_tick_));
    }
    std::uint64_t phase_start_tick() const noexcept { return phase_start_tick_; }
    /// Opens file 0 of the channel and counts the time. False, and the stream has failed, when that is refused.
    bool open_file(const backends::OpenRequest& request);
    /// Continues a call that moved less than asked, `moved` bytes, until it is complete. Returns the bytes moved in all
    /// (short only at the end of the file), or -errno.
    std::int64_t continue_short_transfer(const backends::IoRequest& operation, std::int64_t moved) noexcept;
    /// Closes file 0 of the channel and counts the time; `path` is for the error.
    bool close_file(const std::string& path);
    bool needs_another_pass() const;
    /// After the deadline all tasks synchronize once, learn the count of the fastest, and continue to it. With barriers
    /// between open, transfer and close too, all meet in one order, whatever becomes of a task: open, deadline, close.
    void continue_to_wearout_target();
    bool must_wear_out() const { return job_.phase->stop.wearout && job_.is_timed && !wearout_ended_; }
    /// Barrier between open, transfer and close (barrier = "intra"): exactly two a stream, also when it failed.
    bool wait_at_intra_barrier() {
        if (!job_.intra_barriers || intra_barriers_passed_ == 2) {
            return true;
        }
        if (intra_barriers_passed_ == 1 && must_wear_out()) {
            continue_to_wearout_target();
        }
        ++intra_barriers_passed_;
        return team_.wait_for_all(job_.stream_index);
    }
    /// An operation of `length` bytes ended: into its slice. True when the deadline has passed with it.
    bool count_operation(std::uint64_t from, std::uint64_t to, std::uint32_t length) noexcept {
        if (to < next_event_ && from >= slice_start_) [[likely]] {
            slice_bytes_ += length;
            ++slice_operations_;
            return false;
        }
        return handle_event(from, to, length);
    }
    /// Operations that ended in the current slice and before the expected event, which locate_item() was not asked
    /// about.
    void count_in_slice(std::uint64_t operations, std::uint64_t bytes) noexcept {
        slice_operations_ += operations;
        slice_bytes_ += bytes;
    }
    /// Hands over what was counted since the last time: at the end of a batch and of a slice, so that the hot loop
    /// touches few lines of memory.
    void publish_counts() noexcept {
        slices_.add_to_current(slice_bytes_, slice_operations_);
        slice_bytes_ = slice_operations_ = 0;
        meter_.live_counters.bytes.store(bytes_done_, std::memory_order_relaxed);
        meter_.live_counters.operations.store(operations_done_, std::memory_order_relaxed);
    }
    bool should_stop() const noexcept {
        return control_.stop.load(std::memory_order_relaxed) != 0 ||
               (stops_with_first_task_ && control_.is_first_task_done.load(std::memory_order_relaxed) != 0);
    }
    /// An operation ended at or after the expected event. True when the deadline has passed with it.
    bool handle_event(std::uint64_t from, std::uint64_t to, std::uint32_t length) noexcept;
    std::uint64_t deadline() const noexcept { return deadline_tick_; }
    /// The deadline came while the stream was idle. True the first time.
    bool pass_deadline() noexcept {
        const bool first = !deadline_passed_;
        if (first) {
            deadline_passed_ = true;
            meter_.stonewall_bytes = bytes_done_;
            meter_.stonewall_operations = operations_done_;
        }
        return first;
    }
    std::uint64_t pause(plan::Nanoseconds length) noexcept;
    bool wait_until(std::uint64_t due) noexcept;
    void fail_operation(const std::string& path, const char* operation, int code, std::uint64_t offset) noexcept;
    void fail_preparation(const char* sentence) noexcept;
    void report_error(const std::string& path, const char* operation, int code, std::uint64_t offset,
                      const std::string& text) noexcept;

    const StreamJob& job_;
    ranks::Team& team_;
    ranks::NodeControl& control_;
    meters::StreamMeter& meter_;
    std::unique_ptr<backends::Channel> channel_;
    Time time_;
    bool failed_ = false;
    bool stops_with_first_task_ = false;
    // Touched by every operation, so all in one line of memory.
    alignas(64) std::uint64_t paused_ticks_ = 0;
    std::uint64_t operations_done_ = 0;  ///< operations, all passes and files
    std::uint64_t bytes_done_ = 0;
    std::uint64_t next_event_ = no_tick;  ///< end of the slice, the deadline, or time to show progress
    std::uint64_t slice_start_ = 0;
    std::uint64_t slice_bytes_ = 0, slice_operations_ = 0;  ///< of the current slice, not handed over yet
    std::uint64_t wearout_target_ = no_tick;                ///< operations to reach after the stonewall
    meters::Slices slices_;

 private:
    void begin_timing();

    /// The next moment at which something must be done besides counting; ten times a second for live progress.
    void schedule_next_event(std::uint64_t tick) noexcept {
        next_event_ = std::min({deadline_tick_, slices_.end_tick(), tick + time_.ticks_of(100'000'000)});
        slice_start_ = slices_.start_tick();
    }

    std::uint64_t phase_start_tick_ = 0, deadline_tick_ = no_tick, min_end_tick_ = 0;
    bool deadline_passed_ = false, wearout_ended_ = false;
    int intra_barriers_passed_ = 0;
};

extern template class TimedStream<MachineClock>;
extern template class TimedStream<ChannelClock>;

}  // namespace sonde::workloads
