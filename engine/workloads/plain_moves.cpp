// SPDX-License-Identifier: Apache-2.0
// The hottest loop: operations that are all writes of plain content, or all reads that nobody checks, one after the
// other. Beside the call to storage an operation costs a reading of the clock, which is kept. What follows from the
// readings is counted some hundred operations at a time, in registers, and in no operation's latency.
#include "workloads/data_stream.hpp"

#include <array>
#include <type_traits>

namespace sonde::workloads {

/// Longest time until a task checks for a request to stop; a longer operation is completed first.
constexpr std::uint64_t stop_check_interval_ns = 100'000;

namespace {

using backends::IoRequest;

/// The one buffer of all reads.
struct SingleBuffer {
    std::byte* buffer;
    std::byte* buffer_at(std::uint64_t, std::uint64_t) const noexcept { return buffer; }
};

/// One system call an operation, timed by the counter: nothing is decided on the way.
struct SyscallPath {
    backends::SyscallFile file;
    static std::uint64_t now() noexcept { return meters::Clock::counter_ticks(); }
    template <bool write>
    std::int64_t transfer(std::byte* buffer, std::uint32_t length, std::uint64_t offset) const noexcept {
        return file.transfer_once<write>(buffer, length, offset);
    }
    template <bool write>
    std::int64_t retry_if_interrupted(std::int64_t moved, std::byte* buffer, std::uint32_t length,
                                      std::uint64_t offset) const noexcept {
        return moved < 0 ? file.retry_if_interrupted<write>(moved, buffer, length, offset) : moved;
    }
};

IoRequest make_io_request(bool write, std::byte* buffer, std::uint32_t length, std::uint64_t offset) noexcept {
    IoRequest operation;
    operation.offset = offset;
    operation.buffer = buffer;
    operation.length = length;
    operation.is_write = write;
    return operation;
}

/// Any channel and any clock.
template <class Time>
struct ChannelPath {
    backends::Channel& channel;
    Time clock;
    std::uint64_t now() const noexcept { return clock.read_ticks(); }
    template <bool write>
    std::int64_t transfer(std::byte* buffer, std::uint32_t length, std::uint64_t offset) const noexcept {
        return channel.transfer(make_io_request(write, buffer, length, offset));
    }
    template <bool write>
    static std::int64_t retry_if_interrupted(std::int64_t moved, std::byte*, std::uint32_t, std::uint64_t) noexcept {
        return moved;
    }
};

}  // namespace

/// Operations of one kind, one after the other: times[0] is when the first began, times[1] … times[count] are their
/// ends, at which each next one began.
template <class Time>
void DataStream<Time>::count_transfers(unsigned kind, const std::uint64_t* times, std::size_t count) noexcept {
    const Time time = time_;
    meters::Histogram& histogram = *histogram_[kind];
    std::uint64_t least = no_tick, most = 0;
#pragma GCC unroll 4
    for (std::size_t k = 0; k < count; ++k) {
        const std::uint64_t ns = time.duration_ns(times[k + 1] - times[k]);
        histogram.count_in_bucket(ns);
        least = std::min(least, ns);
        most = std::max(most, ns);
    }
    histogram.add_summary(time.duration_ns(times[count] - times[0]), least, most);
    meter_.operations[kind] += count;
    meter_.bytes[kind] += count * length_;
    bytes_done_ += count * length_;
    operations_done_ += count;
}

/// Nothing pauses the clock of a stream that verifies nothing, so the clock is read bare here.
template <class Time>
template <bool write, class IoPath, class Content>
typename DataStream<Time>::LoopEnd DataStream<Time>::run_simple_loop(const IoPath& io_path, const Content& content,
                                                                     const FileJob& file, std::uint64_t from,
                                                                     std::uint64_t to, std::uint64_t pass) {
    // Where each operation goes, until it is done; then when it ended. One array, so that one register is enough. The
    // first place is for when the first one began.
    std::array<std::uint64_t, TargetCounter::max_at_once + 1> steps;
    const IoPath local_path = io_path;  // in registers, or near
    const Content data = content;
    const std::uint64_t glance = time_.ticks_of(stop_check_interval_ns);
    const std::uint32_t length = length_;
    for (std::uint64_t next = from; next < to;) {
        const std::size_t count = std::min<std::uint64_t>(steps.size() - 1, to - next);
        file.geometry.fill_offsets(next, pass, {steps.data() + 1, count});
        if (current_target_counter_ != nullptr) [[unlikely]] {
            current_target_counter_->set_expected_offsets({steps.data() + 1, count});
        }
        std::uint64_t* const last = steps.data() + 1 + count;
        for (std::uint64_t* step = steps.data() + 1; step != last;) {
            std::uint64_t* const begin = step - 1;
            *begin = local_path.now();
            // handle_event() divides operations that began before the slice among slices, one operation at a time.
            const std::uint64_t event_at = *begin < this->slice_start_ ? 0 : this->next_event_;
            const std::uint64_t until = std::min(event_at, *begin + glance);
            std::uint64_t end = 0;
            std::int64_t moved = 0;
            do {
                const std::uint64_t offset = *step;
                std::byte* const buffer = data.buffer_at(offset, length);
                moved = local_path.template transfer<write>(buffer, length, offset);
                if (moved != length) [[unlikely]] {
                    moved = local_path.template retry_if_interrupted<write>(moved, buffer, length, offset);
                    if (job_.phase->data.io.continue_short) {
                        moved = continue_short_transfer(make_io_request(write, buffer, length, offset), moved);
                    }
                    if (moved < length) {
                        break;
                    }
                }
                end = local_path.now();
                *step++ = end;
            } while (step != last && end < until);
            const std::uint64_t stopped_at = step == last ? 0 : *step;
            const LoopEnd how = count_batch(write ? meters::kind_write : meters::kind_read, begin,
                                            static_cast<std::size_t>(step - begin) - 1, event_at);
            if (current_target_counter_ != nullptr) [[unlikely]] {
                count_targets(write ? meters::kind_write : meters::kind_read,
                              current_target_counter_->expected_offsets() + (begin - steps.data()), *begin,
                              {begin + 1, step});
            }
            if (moved < length) [[unlikely]] {
                fail_operation(file.path, write ? "write" : "read", errno_of_transfer(moved, write), stopped_at);
                return LoopEnd::stop;
            }
            if (how != LoopEnd::finished) {
                return how;
            }
        }
        next += count;
        this->publish_counts();
    }
    return LoopEnd::finished;
}

/// Counts operations of which at most the last one ended at the expected event. Returns how the loop continues.
template <class Time>
typename DataStream<Time>::LoopEnd DataStream<Time>::count_batch(unsigned kind, const std::uint64_t* times,
                                                                 std::size_t count, std::uint64_t event_at) noexcept {
    count_transfers(kind, times, count);
    const bool at_event = count > 0 && times[count] >= event_at;
    const std::size_t inside = count - (at_event ? 1 : 0);
    this->count_in_slice(inside, inside * length_);
    const bool passed = at_event && this->handle_event(times[inside], times[count], length_);
    return should_stop() ? LoopEnd::stop : passed ? LoopEnd::deadline : LoopEnd::finished;
}

template <class Time>
template <bool write>
typename DataStream<Time>::LoopEnd DataStream<Time>::choose_simple_loop(const FileJob& file, std::uint64_t from,
                                                                        std::uint64_t to, std::uint64_t pass) {
    const auto with = [&](const auto& io_path) {
        if constexpr (!write) {
            return run_simple_loop<write>(io_path, SingleBuffer{buffers_->read_buffer(0)}, file, from, to, pass);
        } else if (payload::PayloadImage& image = buffers_->image(0); image.stamp_all_granules((to - from) * length_)) {
            return run_simple_loop<write>(io_path, image.stamp_writer<true>(), file, from, to, pass);
        } else {
            return run_simple_loop<write>(io_path, image.stamp_writer<false>(), file, from, to, pass);
        }
    };
    if constexpr (std::is_same_v<Time, MachineClock>) {
        if (const backends::SyscallFile bare = channel_->syscall_file(0); bare && time_.uses_counter()) {
            return with(SyscallPath{bare});
        }
    }
    return with(ChannelPath<Time>{*channel_, time_});
}

template <class Time>
typename DataStream<Time>::LoopEnd DataStream<Time>::run_unchecked_read_loop(const FileJob& file, std::uint64_t from,
                                                                             std::uint64_t to, std::uint64_t pass) {
    return choose_simple_loop<false>(file, from, to, pass);
}

template <class Time>
typename DataStream<Time>::LoopEnd DataStream<Time>::run_stamped_write_loop(const FileJob& file, std::uint64_t from,
                                                                            std::uint64_t to, std::uint64_t pass) {
    return choose_simple_loop<true>(file, from, to, pass);
}

template class DataStream<MachineClock>;
template class DataStream<ChannelClock>;

}  // namespace sonde::workloads
