// SPDX-License-Identifier: Apache-2.0
// Files that come and go before anything is gained: journals of databases, files of status. Making one known, so that
// it could be buffered, costs more than all of its few calls. The next ones of such a name are left alone for a while,
// and then one is looked at again. A name may be another file's tomorrow: by this nothing is decided but whether a file
// is buffered at all, which nobody needs to be right.
#pragma once

#include "buffer/file.hpp"

namespace sonde::buffer {

/// The rule that the last files of this name had, when the next one is to be left alone: this opening counts. Else
/// nullptr.
settings::Rule* left_alone_by_name(const char* path) noexcept;
/// The last description of the file is gone. With its lock held.
void note_life(const File& file) noexcept;
/// What is noted of the file at its end goes to this name, as the program gave it.
void note_name(File& file, const char* path) noexcept;
void brief_lives_after_fork() noexcept;
inline constexpr const char* why_brief = "earlier files of its name came and went before anything was gained";

}  // namespace sonde::buffer
