// SPDX-License-Identifier: Apache-2.0
// Creates the stream that a phase needs: one line for each workload.
#pragma once

#include "workloads/stream.hpp"

#include <memory>

namespace sonde::workloads {

/// `job`, `base`, `team`, `clock` and `meter` must outlive the stream. Throws std::runtime_error when the backend
/// cannot open its channel.
std::unique_ptr<TaskStream> make_stream(const StreamJob& job, const payload::PayloadBase& base, ranks::Team& team,
                                        const meters::Clock& clock, meters::StreamMeter& meter);

}  // namespace sonde::workloads
