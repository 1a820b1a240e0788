// SPDX-License-Identifier: Apache-2.0
// The files of a phase before it begins: what an earlier phase left there, and what several tasks share.
#pragma once

#include "files/file_map.hpp"
#include "phases/context.hpp"

#include <cstddef>
#include <string>

namespace sonde::phases {

/// Untimed work of one process before a writing phase: removes what an earlier phase left when the phase starts from
/// empty files, and makes the files that several tasks share. Returns one sentence, empty when all is well.
std::string prepare_files(const Context& context, std::size_t index, const files::FileMap& map);

}  // namespace sonde::phases
