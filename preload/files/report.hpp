// SPDX-License-Identifier: Apache-2.0
// What was done for a file, for people and as JSON.
#pragma once

#include "model/statistics.hpp"
#include "settings/params.hpp"

namespace sonde::buffer {

struct File;

/// With the lock of the file held.
void report_file(File& file) noexcept;
/// In the child of a fork: reports go to its own standard error, and only as long as that is open.
void close_report() noexcept;
/// Final report; once.
void report_at_end() noexcept;

}  // namespace sonde::buffer
