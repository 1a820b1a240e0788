// SPDX-License-Identifier: Apache-2.0
// Files that a user names on the command line.
#pragma once

#include <string>

namespace sonde::simulate {

/// All of it. Throws SiteError, "system FILE cannot be read: ...", where `what` is "system".
std::string text_of_file(const std::string& path, const char* what);

}  // namespace sonde::simulate
