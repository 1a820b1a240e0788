// SPDX-License-Identifier: Apache-2.0
// What was done for a file, for people and as JSON.
#pragma once

namespace sonde::buffer {

struct File;

/// With the lock of the file held.
void report_file(File& file) noexcept;
/// Final report; once.
void report_at_end() noexcept;

}  // namespace sonde::buffer
