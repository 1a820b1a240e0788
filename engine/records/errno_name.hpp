// SPDX-License-Identifier: Apache-2.0
// Error numbers by their names, which manuals and kernel sources know.
#pragma once

#include <string>

namespace sonde::records {

/// "ENOSPC" for 28, "E28" for names not in the list.
std::string errno_name(int code);

}  // namespace sonde::records
