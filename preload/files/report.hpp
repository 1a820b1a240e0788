// SPDX-License-Identifier: Apache-2.0
// Reports what the library did for a file, as text and as JSON.
#pragma once

#include "model/statistics.hpp"
#include "settings/params.hpp"

namespace sonde::buffer {

struct File;

/// With the lock of the file held.
void report_file(File& file) noexcept;
/// Called in a child after fork(): its reports go to its own standard error while that is open.
void close_report() noexcept;
/// Final report; once.
void report_at_end() noexcept;

}  // namespace sonde::buffer
