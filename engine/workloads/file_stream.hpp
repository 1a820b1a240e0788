// SPDX-License-Identifier: Apache-2.0
// Operations on whole files by name: stat and remove.
#pragma once

#include "workloads/timed_stream.hpp"

namespace sonde::workloads {

/// Looks at or removes each file of the stream; one operation a file. Names are made before the clock is read.
template <class Time>
class FileStream final : public TimedStream<Time> {
 public:
    FileStream(const StreamJob& job, ranks::Team& team, const meters::Clock& clock, meters::StreamMeter& meter,
               std::unique_ptr<backends::Channel> channel)
        : TimedStream<Time>(job, team, clock, meter, std::move(channel)) {}

 private:
    bool run_pass(std::uint64_t pass) override;
    bool run_batch(std::uint64_t& next, std::uint64_t to);
};

}  // namespace sonde::workloads
