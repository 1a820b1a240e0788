// SPDX-License-Identifier: Apache-2.0
// A working set that moves on: of each item in turn a look, a read, a removal, and a new item further on. All four
// calls are timed on their own; names and content are made between them, outside of every latency.
#pragma once

#include "payload/ior_pattern.hpp"
#include "workloads/buffers.hpp"
#include "workloads/item_replacement.hpp"
#include "workloads/timed_stream.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace sonde::workloads {

template <class Time>
class CycleStream final : public TimedStream<Time> {
 public:
    CycleStream(const StreamJob& job, ranks::Team& team, const meters::Clock& clock, meters::StreamMeter& meter,
                std::unique_ptr<backends::Channel> channel, std::unique_ptr<Buffers> buffers);

 private:
    bool run_pass(std::uint64_t pass) override;
    /// All copies of the tree once. False when the stream is to end; the deadline only ends it after a whole round.
    bool run_round(std::uint64_t number);
    bool replace_item(const ItemReplacement& turn);
    void prepare_round(std::uint64_t round);  ///< its turns, one in each copy
    /// One call of `kind`, timed, with `length` bytes. False when it failed.
    template <class Call>
    bool time_call(unsigned kind, const char* operation, const std::string& path, std::uint32_t length, Call call);
    void wait_for(std::uint64_t ticks);
    void verify_item(const ItemReplacement& turn, std::int64_t got);
    std::span<const std::byte> make_packet(int owner, std::uint64_t number, bool for_create);
    std::uint64_t calls_per_round() const { return replacements_.size() * calls_per_replacement(meta_.cycle); }

    const TreeJob& tree_;
    const plan::Meta& meta_;
    backends::NameOperations& name_operations_;
    std::unique_ptr<Buffers> buffers_;
    std::vector<ItemReplacement> replacements_;
    std::vector<std::byte> memory_;    ///< of the two packets
    std::span<std::byte> packets_[2];  ///< what was read should be this; what is made is this
    int owners_[2] = {-1, -1};         ///< whose they are at the moment
    std::uint32_t length_;
    bool is_deadline_passed_ = false;
};

extern template class CycleStream<MachineClock>;
extern template class CycleStream<ChannelClock>;

}  // namespace sonde::workloads
