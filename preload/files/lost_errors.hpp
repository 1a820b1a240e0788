// SPDX-License-Identifier: Apache-2.0
// Errors of delayed writes that no call of the program reported.
#pragma once

#include "model/file.hpp"

namespace sonde::buffer {

/// Names the file and the error on standard error and in the system log.
void report_lost_error(const File& file, int error) noexcept;
/// Reports, at the end of the process, an error that no descriptor of the file has returned. Requires the lock of the
/// file.
void report_unseen_errors(File& file) noexcept;

}  // namespace sonde::buffer
