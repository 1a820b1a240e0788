// SPDX-License-Identifier: Apache-2.0
// Operations on the items and directories of a tree. What a name is costs nothing in the timed call: names are made in
// batches before.
#pragma once

#include "payload/ior_pattern.hpp"
#include "workloads/buffers.hpp"
#include "workloads/item_names.hpp"
#include "workloads/timed_stream.hpp"

#include <array>

namespace sonde::workloads {

template <class Time>
class TreeStream final : public TimedStream<Time> {
 public:
    /// `buffers` only where bytes are written or read.
    TreeStream(const StreamJob& job, ranks::Team& team, const meters::Clock& clock, meters::StreamMeter& meter,
               std::unique_ptr<backends::Channel> channel, std::unique_ptr<Buffers> buffers);

 private:
    bool run_pass(std::uint64_t pass) override;
    /// Operations `next` … to-1. False when the stream is to end, or the deadline has passed.
    bool run_items(std::uint64_t& next, std::uint64_t to, std::uint64_t pass);
    bool run_directories(std::uint64_t& next, std::uint64_t to);
    bool run_batch(std::uint64_t& next, std::size_t count);
    /// Calls `call(k)` for each name of a batch; `name_of(k)` is its path for messages.
    template <class Call, class Name>
    bool time_each_call(std::uint64_t& next, std::size_t count, unsigned kind, const char* operation, Call call,
                        Name name_of);
    bool create(std::uint64_t& next, std::size_t count);
    bool read(std::uint64_t& next, std::size_t count);
    bool rename(std::uint64_t& next, std::size_t count);
    void verify_item(std::size_t k, std::int64_t got);
    std::span<const std::byte> make_content(std::size_t k);
    std::span<const std::byte> make_packet(std::size_t k);
    std::string describe_difference(std::size_t k, std::int64_t got, std::uint64_t& offset);
    void sync();
    std::int64_t list_directory(const char* path);

    const TreeJob& tree_;
    const plan::Meta& meta_;
    plan::Op op_;
    backends::NameOperations& name_operations_;
    std::unique_ptr<Buffers> buffers_;
    ItemNames items_;
    std::uint64_t planned_;
    std::uint32_t length_ = 0;  ///< bytes of each operation
    std::array<std::string, 64> directories_;
    std::vector<std::byte> listing_;  ///< readdir
    std::vector<std::byte> packet_memory_;
    std::span<std::byte> packet_;  ///< IOR's content: what the files of one task have in common, marked
    int packet_of_ = -1;           ///< that task
    std::string first_ring_path_, previous_ring_path_;  ///< rename: the name that is kept aside, and the one before
};

}  // namespace sonde::workloads
