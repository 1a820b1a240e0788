// SPDX-License-Identifier: Apache-2.0
// Changes a file between buffered, suspended and released. Functions require the lock of the file unless stated
// otherwise.
#pragma once

#include "model/file.hpp"

namespace sonde::buffer {

/// Waits until no call and no worker uses the file, and blocks new ones. The mode may have changed afterwards.
void close_gate(File& file) noexcept;
void open_gate(File& file) noexcept;
/// Flushes the file and suspends its buffering. `calls`: 0 = until resume_buffering(), else for so many calls.
void suspend_buffering(File& file) noexcept;
void suspend_for(File& file, std::int32_t calls) noexcept;
void resume_buffering(File& file) noexcept;
void release_file(File& file, const char* reason) noexcept;
/// Releases a file that another process uses according to the node table.
void release_if_shared(File& file) noexcept;
/// Releases a file that another process has appended to although it was declared exclusive. The file has the data of
/// both.
void release_if_grown(File& file) noexcept;
inline constexpr const char* why_grown = "somebody else wrote to it although alone says that nobody does";
inline constexpr const char* why_lease_lost =
    "the kernel took the lease back, because the process was stopped for too long while another one waited";

}  // namespace sonde::buffer
