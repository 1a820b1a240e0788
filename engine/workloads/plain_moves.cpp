// SPDX-License-Identifier: Apache-2.0
// The hottest loop: operations that are all writes of plain content, or all reads that nobody checks, one after the
// other. Beside the call to storage an operation costs a reading of the clock, which is kept. What follows from the
// readings is counted some hundred operations at a time, in registers, and in no operation's latency.
#include "workloads/data_stream.hpp"

#include <array>
#include <type_traits>

namespace sonde::workloads {

/// How long a task may go on before it looks whether it was told to stop: one operation when that takes longer.
constexpr std::uint64_t glance_ns = 100'000;

namespace {

using backends::IoRequest;

/// Where all reads go.
struct OneBuffer {
    std::byte* buffer;
    std::byte* at(std::uint64_t, std::uint64_t) const noexcept { return buffer; }
};

/// One system call an operation, timed by the counter: nothing is decided on the way.
struct ShortRoad {
    backends::SyscallFile file;
    static std::uint64_t now() noexcept { return meters::Clock::counter_ticks(); }
    template <bool write>
    std::int64_t transfer(std::byte* buffer, std::uint32_t length, std::uint64_t offset) const noexcept {
        return file.transfer_once<write>(buffer, length, offset);
    }
    template <bool write>
    std::int64_t settle(std::int64_t moved, std::byte* buffer, std::uint32_t length,
                        std::uint64_t offset) const noexcept {
        return moved < 0 ? file.retry_if_interrupted<write>(moved, buffer, length, offset) : moved;
    }
};

IoRequest operation_of(bool write, std::byte* buffer, std::uint32_t length, std::uint64_t offset) noexcept {
    IoRequest operation;
    operation.offset = offset;
    operation.buffer = buffer;
    operation.length = length;
    operation.is_write = write;
    return operation;
}

/// Any channel and any clock.
template <class Time>
struct LongRoad {
    backends::Channel& channel;
    Time time;
    std::uint64_t now() const noexcept { return time.raw(); }
    template <bool write>
    std::int64_t transfer(std::byte* buffer, std::uint32_t length, std::uint64_t offset) const noexcept {
        return channel.transfer(operation_of(write, buffer, length, offset));
    }
    template <bool write>
    static std::int64_t settle(std::int64_t moved, std::byte*, std::uint32_t, std::uint64_t) noexcept {
        return moved;
    }
};

}  // namespace

/// Operations of one kind, one after the other: times[0] is when the first began, times[1] … times[count] are their
/// ends, at which each next one began.
template <class Time>
void DataStream<Time>::account(unsigned kind, const std::uint64_t* times, std::size_t count) noexcept {
    const Time time = time_;
    meters::Histogram& histogram = *histogram_[kind];
    std::uint64_t least = never, most = 0;
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
    bytes_ += count * length_;
    done_ += count;
}

/// Nothing pauses the clock of a stream that verifies nothing, so the clock is read bare here.
template <class Time>
template <bool write, class Road, class Content>
typename DataStream<Time>::End DataStream<Time>::plain_loop(const Road& road, const Content& content,
                                                            const FileJob& file, std::uint64_t from, std::uint64_t to,
                                                            std::uint64_t pass) {
    // Where each operation goes, until it is done; then when it ended. One array, so that one register is enough. The
    // first place is for when the first one began.
    std::array<std::uint64_t, TargetCounting::most_at_once + 1> steps;
    const Road local_road = road;  // in registers, or near
    const Content data = content;
    const std::uint64_t glance = time_.ticks_of(glance_ns);
    const std::uint32_t length = length_;
    for (std::uint64_t next = from; next < to;) {
        const std::size_t count = std::min<std::uint64_t>(steps.size() - 1, to - next);
        file.geometry.fill_offsets(next, pass, {steps.data() + 1, count});
        if (counting_ != nullptr) [[unlikely]] {
            counting_->expect({steps.data() + 1, count});
        }
        std::uint64_t* const last = steps.data() + 1 + count;
        for (std::uint64_t* step = steps.data() + 1; step != last;) {
            std::uint64_t* const begin = step - 1;
            *begin = local_road.now();
            // What began before the slice is spread by event(), one operation at a time.
            const std::uint64_t event_at = *begin < this->slice_start_ ? 0 : this->event_;
            const std::uint64_t until = std::min(event_at, *begin + glance);
            std::uint64_t end = 0;
            std::int64_t moved = 0;
            do {
                const std::uint64_t offset = *step;
                std::byte* const buffer = data.buffer_at(offset, length);
                moved = local_road.template transfer<write>(buffer, length, offset);
                if (moved != length) [[unlikely]] {
                    moved = local_road.template settle<write>(moved, buffer, length, offset);
                    moved = finish_short(operation_of(write, buffer, length, offset), moved);
                    if (moved < length) {
                        break;
                    }
                }
                end = local_road.now();
                *step++ = end;
            } while (step != last && end < until);
            const std::uint64_t stopped_at = step == last ? 0 : *step;
            const End how = count_done(write ? meters::kind_write : meters::kind_read, begin,
                                       static_cast<std::size_t>(step - begin) - 1, event_at);
            if (counting_ != nullptr) [[unlikely]] {
                count_targets(write ? meters::kind_write : meters::kind_read,
                              counting_->expected() + (begin - steps.data()), *begin, {begin + 1, step});
            }
            if (moved < length) [[unlikely]] {
                fail(file.path, write ? "write" : "read", reason(moved, write), stopped_at);
                return End::stop;
            }
            if (how != End::finished) {
                return how;
            }
        }
        next += count;
        this->settle();
    }
    return End::finished;
}

/// Counts operations of which at most the last one ended at the expected event. How the loop is to go on.
template <class Time>
typename DataStream<Time>::End DataStream<Time>::count_done(unsigned kind, const std::uint64_t* times,
                                                            std::size_t count, std::uint64_t event_at) noexcept {
    account(kind, times, count);
    const bool at_event = count > 0 && times[count] >= event_at;
    const std::size_t inside = count - (at_event ? 1 : 0);
    this->count_inside(inside, inside * length_);
    const bool passed = at_event && this->event(times[inside], times[count], length_);
    return told_to_stop() ? End::stop : passed ? End::limit : End::finished;
}

template <class Time>
template <bool write>
typename DataStream<Time>::End DataStream<Time>::plain(const FileJob& file, std::uint64_t from, std::uint64_t to,
                                                       std::uint64_t pass) {
    const auto with = [&](const auto& road) {
        if constexpr (!write) {
            return plain_loop<write>(road, OneBuffer{buffers_->read_buffer(0)}, file, from, to, pass);
        } else if (payload::PayloadImage& image = buffers_->image(0); image.stamp_all_granules((to - from) * length_)) {
            return plain_loop<write>(road, image.stamp_writer<true>(), file, from, to, pass);
        } else {
            return plain_loop<write>(road, image.stamp_writer<false>(), file, from, to, pass);
        }
    };
    if constexpr (std::is_same_v<Time, MachineTime>) {
        if (const backends::SyscallFile bare = channel_->syscall_file(0); bare && time_.counter()) {
            return with(ShortRoad{bare});
        }
    }
    return with(LongRoad<Time>{*channel_, time_});
}

template <class Time>
typename DataStream<Time>::End DataStream<Time>::plain_reads(const FileJob& file, std::uint64_t from, std::uint64_t to,
                                                             std::uint64_t pass) {
    return plain<false>(file, from, to, pass);
}

template <class Time>
typename DataStream<Time>::End DataStream<Time>::plain_writes(const FileJob& file, std::uint64_t from, std::uint64_t to,
                                                              std::uint64_t pass) {
    return plain<true>(file, from, to, pass);
}

template class DataStream<MachineTime>;
template class DataStream<ChannelTime>;

}  // namespace sonde::workloads
