// SPDX-License-Identifier: Apache-2.0
// Names of error numbers.
#pragma once

#include <string>

namespace sonde::records {

/// "ENOSPC" for 28, "E28" for unknown numbers.
std::string errno_name(int code);

}  // namespace sonde::records
