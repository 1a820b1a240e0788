// SPDX-License-Identifier: Apache-2.0
// Before anything else: the settings, and the way to storage.
#pragma once

#include "settings/params.hpp"

#include <sys/types.h>
#include <cstddef>

namespace sonde::buffer {

/// The calls that reach the storage. Like those of libc: -1 and errno.
struct Below {
    ssize_t (*pread)(int, void*, std::size_t, off64_t) = nullptr;
    ssize_t (*pwrite)(int, const void*, std::size_t, off64_t) = nullptr;
};

/// Before anything else. `report` is a descriptor for reports to people, or -1; `lines` a folder that receives the same
/// as JSON, one file a process, or null.
void start(const Below& below, settings::Settings& settings, int report, const char* lines) noexcept;

}  // namespace sonde::buffer
