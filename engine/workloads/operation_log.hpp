// SPDX-License-Identifier: Apache-2.0
// A line for each operation of one task, as CSV. For those who ask for it: series and histograms of the record cost
// less and bound their memory.
#pragma once

#include "backends/backend.hpp"
#include "meters/clock.hpp"

#include <memory>
#include <string>

namespace sonde::workloads {

/// Passes all calls on to `channel`, and writes `path`: a heading, then for each transfer its start in seconds since
/// the stream began, its duration in seconds and its bytes per second (operations on names that move none: per second).
/// Lines are kept in memory, 64 Ki at a time, and written between operations; only a full buffer is written while the
/// clock runs. Transfers in a queue are logged when they complete. A log that cannot be written is a note of the
/// channel, not an error.
std::unique_ptr<backends::Channel> wrap_in_operation_log(std::unique_ptr<backends::Channel> channel,
                                                         const std::string& path, const meters::Clock& clock,
                                                         unsigned slots);

}  // namespace sonde::workloads
