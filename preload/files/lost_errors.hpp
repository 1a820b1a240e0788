// SPDX-License-Identifier: Apache-2.0
// Errors of delayed writes that no call of the program reported.
#pragma once

#include "model/file.hpp"

namespace sonde::buffer {

/// Names the file and the error on standard error and in the system log.
void report_lost_error(const File& file, int error) noexcept;
/// At the end of the process: the same when a descriptor of the file has not seen its last error. With its lock held.
void report_unseen_errors(File& file) noexcept;

}  // namespace sonde::buffer
