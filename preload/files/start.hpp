// SPDX-License-Identifier: Apache-2.0
// Starts the library with its settings and the functions that access storage.
#pragma once

#include "model/state.hpp"

namespace sonde::buffer {

/// Before anything else. `report` is a descriptor for reports to people, or -1; `lines` a folder that receives the same
/// as JSON, one file a process, or null.
void start_buffering(const StorageCalls& below, settings::Settings& settings, int report, const char* lines) noexcept;

}  // namespace sonde::buffer
