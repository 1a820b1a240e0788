// SPDX-License-Identifier: Apache-2.0
// Prepares the files of a phase before it begins.
#pragma once

#include "files/file_map.hpp"
#include "phases/context.hpp"

#include <cstddef>
#include <string>

namespace sonde::phases {

/// Untimed work of one process before a writing phase: removes files of earlier phases when the phase starts from empty
/// files, and creates the files that several tasks share. Returns one sentence on failure, else an empty string.
std::string prepare_files(const RunContext& context, std::size_t index, const files::FileMap& map);

}  // namespace sonde::phases
