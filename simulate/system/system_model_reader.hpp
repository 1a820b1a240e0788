// SPDX-License-Identifier: Apache-2.0
// Reads a mount of a described system into the model's `SystemModel`.
#pragma once

#include "system/system_model.hpp"

#include <string>
#include <string_view>

namespace sonde::simulate {

/// From a resolved system (schema/system/resolved.schema.json). `mount` names a mount, a pool or a file system; empty:
/// the first mount with targets that can be simulated. Throws SystemModelError.
SystemModel read_system_model(std::string_view resolved_json, const std::string& mount);

/// The text of a file that a user named. Throws SystemModelError, "system FILE cannot be read: ...", where `role` is
/// "system".
std::string read_text_file(const std::string& path, const char* role);

}  // namespace sonde::simulate
