// SPDX-License-Identifier: Apache-2.0
// The hottest loop: operations that are all writes of plain content, or all reads that nobody checks, one after the
// other. Beside the call to storage an operation costs a reading of the clock, which is kept. What follows from the
// readings is counted some hundred operations at a time, in registers, and in no operation's latency.
#include "workloads/data_stream.hpp"

#include <array>

namespace sonde::workloads {

/// How long a task may go on before it looks whether it was told to stop: one operation when that takes longer.
constexpr std::uint64_t glance_ns = 100'000;

/// Operations of one kind, one after the other: the first began at `begin`, each other when the one before it ended.
template <class Time>
void DataStream<Time>::account(unsigned kind, std::uint64_t begin, std::span<const std::uint64_t> ends) noexcept {
    const Time time = time_;
    meters::Histogram& histogram = *histogram_[kind];
    std::uint64_t least = never, most = 0;
    std::uint64_t last = begin;
    for (const std::uint64_t end : ends) {
        const std::uint64_t ns = time.duration_ns(end - last);
        last = end;
        histogram.count_one(ns);
        least = std::min(least, ns);
        most = std::max(most, ns);
    }
    histogram.summarize(time.duration_ns(last - begin), least, most);
    meter_.operations[kind] += ends.size();
    meter_.bytes[kind] += ends.size() * length_;
    bytes_ += ends.size() * length_;
    done_ += ends.size();
}

/// Nothing pauses the clock of a stream that verifies nothing, so the clock is read bare here.
template <class Time>
template <bool write>
typename DataStream<Time>::End DataStream<Time>::plain(const FileJob& file, std::uint64_t from, std::uint64_t to,
                                                       std::uint64_t pass) {
    // Where each operation goes, until it is done; then when it ended. One array, so that one register is enough.
    std::array<std::uint64_t, 256> steps;
    backends::Channel& channel = *channel_;
    const auto pen = write ? buffers_->image(0).pen() : payload::Image::Pen();
    const std::uint64_t glance = time_.ticks_of(glance_ns);
    const std::int64_t length = length_;
    backends::Operation operation;
    operation.length = length_;
    operation.write = write;
    operation.buffer = write ? nullptr : buffers_->read_buffer(0);
    for (std::uint64_t next = from; next < to;) {
        const std::size_t count = std::min<std::uint64_t>(steps.size(), to - next);
        file.geometry.fill(next, pass, {steps.data(), count});
        std::uint64_t* const last = steps.data() + count;
        for (std::uint64_t* step = steps.data(); step != last;) {
            std::uint64_t* const first = step;
            const std::uint64_t begin = time_.raw();
            // What began before the slice is spread by event(), one operation at a time.
            const std::uint64_t event_at = begin < this->slice_start_ ? 0 : this->event_;
            const std::uint64_t until = std::min(event_at, begin + glance);
            std::uint64_t end = 0;
            std::int64_t moved = 0;
            do {
                operation.offset = *step;
                if constexpr (write) {
                    operation.buffer = pen.at(operation.offset, operation.length);
                }
                moved = channel.transfer(operation);
                if (moved != length) [[unlikely]] {
                    moved = finish_short(operation, moved);
                    if (moved < length) {
                        break;
                    }
                }
                end = time_.raw();
                *step++ = end;
            } while (step != last && end < until);
            const End how = count_done(write ? meters::kind_write : meters::kind_read, begin, {first, step}, event_at);
            if (moved < length) [[unlikely]] {
                fail(file.path, write ? "write" : "read", reason(moved, write), operation.offset);
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
typename DataStream<Time>::End DataStream<Time>::count_done(unsigned kind, std::uint64_t begin,
                                                            std::span<const std::uint64_t> ends,
                                                            std::uint64_t event_at) noexcept {
    account(kind, begin, ends);
    const bool at_event = !ends.empty() && ends.back() >= event_at;
    const std::size_t inside = ends.size() - (at_event ? 1 : 0);
    this->count_inside(inside, inside * length_);
    const bool passed = at_event && this->event(inside > 0 ? ends[inside - 1] : begin, ends.back(), length_);
    return told_to_stop() ? End::stop : passed ? End::limit : End::finished;
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
