// SPDX-License-Identifier: Apache-2.0
// Meters of streams that did exactly what a test says.
#pragma once

#include "meters/stream_meter.hpp"
#include "results/tables.hpp"
#include "results/totals.hpp"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

namespace sonde::tests {

constexpr int max_slices = 128;
constexpr std::int64_t ms = 1'000'000;
constexpr std::uint64_t mb = 1'000'000;

/// One stream's meter with its slices behind it, as in shared memory.
class Stream {
 public:
    explicit Stream(int task, int stream = 0)
        : memory_(std::aligned_alloc(4096, meters::StreamMeter::address_space_bytes(max_slices)), std::free),
          meter_(new (std::memset(memory_.get(), 0, meters::StreamMeter::address_space_bytes(max_slices)))
                     meters::StreamMeter) {
        meter_->task = task;
        meter_->duplex_stream = stream;
        slices_.begin(meter_->slice_bytes(), meter_->slice_operations(max_slices), max_slices, 0, 100 * ms);
    }

    Stream& open(std::int64_t from_ms, std::int64_t to_ms) { return part(meters::part_open, from_ms, to_ms); }
    Stream& close(std::int64_t from_ms, std::int64_t to_ms) { return part(meters::part_close, from_ms, to_ms); }

    /// `count` writes of `bytes` one after the other, together from `from_ms` to `to_ms`.
    Stream& write(std::int64_t from_ms, std::int64_t to_ms, int count, std::uint64_t bytes) {
        const std::int64_t each = (to_ms - from_ms) * ms / count;
        for (int i = 0; i < count; ++i) {
            const auto start = static_cast<std::uint64_t>(from_ms * ms + i * each);
            slices_.add(start, start + static_cast<std::uint64_t>(each), bytes);
            meter_->histogram(meters::kind_write).add(static_cast<std::uint64_t>(each));
            meter_->bytes[meters::kind_write] += bytes;
            ++meter_->operations[meters::kind_write];
        }
        return part(meters::part_transfer, from_ms, to_ms);
    }
    /// Sets the bytes transferred until the deadline.
    Stream& at_wall(std::uint64_t bytes, std::uint64_t operations, bool passed) {
        meter_->stonewall_bytes = bytes;
        meter_->stonewall_operations = operations;
        meter_->deadline_passed = passed;
        return *this;
    }
    meters::StreamMeter& meter() {
        meter_->slices_used = slices_.count_used_slices();
        meter_->slices_doublings = slices_.doublings();
        return *meter_;
    }
    std::uint32_t doublings() const { return slices_.doublings(); }

 private:
    Stream& part(meters::WorkPart which, std::int64_t from_ms, std::int64_t to_ms) {
        meter_->parts_of_work[which].add(from_ms * ms, to_ms * ms);
        return *this;
    }

    std::unique_ptr<void, decltype(&std::free)> memory_;
    meters::StreamMeter* meter_;
    meters::Slices slices_;
};

/// Totals of some streams of one node.
inline results::Totals totals_of(std::initializer_list<Stream*> streams, int node = 0) {
    std::uint32_t doublings = 0;
    for (const Stream* stream : streams) {
        doublings = std::max(doublings, stream->doublings());
    }
    results::Totals totals;
    for (Stream* stream : streams) {
        totals.add(stream->meter(), node, max_slices, 100 * ms << doublings, doublings, 0);
    }
    return totals;
}

}  // namespace sonde::tests
