// SPDX-License-Identifier: Apache-2.0
// Issues the operations that a file lists for this task, in their order, after their think times.
#pragma once

#include "workloads/buffers.hpp"
#include "workloads/timed_stream.hpp"

#include <string>
#include <vector>

namespace sonde::workloads {

/// Paths are computed before the timed part; the loop over operations does not allocate.
template <class Time>
class ReplayStream final : public TimedStream<Time> {
 public:
    ReplayStream(const StreamJob& job, ranks::Team& team, const meters::Clock& clock, meters::StreamMeter& meter,
                 std::unique_ptr<backends::Channel> channel, std::unique_ptr<Buffers> buffers);
    ~ReplayStream() override { this->channel_.reset(); }  // it may have registered the buffers

 private:
    bool run_pass(std::uint64_t pass) override;
    /// One operation. False when it failed, or the stream must end.
    bool run_operation(const patterns::ListedOperation& operation);
    std::int64_t execute_call(const patterns::ListedOperation& operation) noexcept;
    std::int64_t transfer(const patterns::ListedOperation& operation, std::byte* buffer) noexcept;
    void wait_think_time(std::uint64_t ns) noexcept;

    const patterns::TaskOperations& list_;
    std::vector<backends::OpenRequest> files_;
    std::unique_ptr<Buffers> buffers_;
    std::byte* write_data_ = nullptr;  ///< of the next write
};

extern template class ReplayStream<MachineClock>;
extern template class ReplayStream<ChannelClock>;

}  // namespace sonde::workloads
