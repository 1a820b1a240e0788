// SPDX-License-Identifier: Apache-2.0
// Changes a file between buffered, suspended and released. Functions require the lock of the file unless stated
// otherwise.
#pragma once

#include "model/file.hpp"

namespace sonde::buffer {

/// No new operation gets in, none is under way, no worker is at it. Check the mode afterwards.
void close_gate(File& file) noexcept;
void open_gate(File& file) noexcept;
/// Active to Suspended: everything to the kernel. `calls`: 0 = until resume_buffering(), else that many calls later.
void suspend_buffering(File& file) noexcept;
void suspend_for(File& file, std::int32_t calls) noexcept;
void resume_buffering(File& file) noexcept;
void release_file(File& file, const char* reason) noexcept;
/// Releases a file that another process uses, as the table of the node tells.
void release_if_shared(File& file) noexcept;
/// Releases a file that another process has appended to although it was declared exclusive. The file has the data of
/// both.
void release_if_grown(File& file) noexcept;
inline constexpr const char* why_grown = "somebody else wrote to it although alone says that nobody does";
inline constexpr const char* why_lease_lost =
    "the kernel took the lease back, because the process was stopped for too long while another one waited";

}  // namespace sonde::buffer
