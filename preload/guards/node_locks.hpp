// SPDX-License-Identifier: Apache-2.0
// Who else on this node uses a file.
#pragma once

#include "model/file.hpp"

namespace sonde::buffer {

/// True when this process may buffer the file: no other one on this node writes it, or, if we write, uses it at all.
bool claim(File& file, bool writes) noexcept;
void disclaim(const File& file) noexcept;
/// Another process has come since, and one of us writes.
bool visited(const File& file) noexcept;
void node_locks_after_fork() noexcept;
/// The descriptor behind `from` is now `to`.
void node_locks_moved(int from, int to) noexcept;
/// The file of the locks takes up one descriptor. Closes it for good: nothing may be buffered any more. True when it
/// was open.
bool forget_node_locks() noexcept;
}  // namespace sonde::buffer
