// SPDX-License-Identifier: Apache-2.0
// Follows each descriptor from open() through dup() to close().
#pragma once

#include "settings/params.hpp"

#include <sys/stat.h>
#include <sys/types.h>

namespace sonde::buffer {

struct OpenedByMpi;

/// A descriptor that may be buffered.
struct OpenedDescriptor {
    int fd;
    int flags;
    const char* path = "";             ///< as the program gave it
    const char* reason = nullptr;      ///< why its file must not be buffered as long as the descriptor is open
    const OpenedByMpi* mpi = nullptr;  ///< opened by MPI-IO
    settings::Rule* rule = nullptr;    ///< nullptr: found by the names
    bool just_opened = true;           ///< its offset is 0
    bool only_if_known = false;        ///< no new file is made for it
};
/// Registers the descriptor if a rule covers its file, or if its file is registered already.
void adopt_descriptor(const OpenedDescriptor& opening) noexcept;
/// Removes a descriptor whose number the kernel has reused: its close() was not intercepted.
void forget_stale_descriptor(int fd) noexcept;
/// Returns the rule for a descriptor by the path it was opened with and by its absolute path, stored in `absolute`.
settings::Rule* find_rule_of_descriptor(settings::Settings& settings, int fd, const char* path,
                                        char (&absolute)[1024]) noexcept;
/// Must be called before close(fd) or dup2(x, fd). Returns 0 or the positive errno that close() must report.
int detach_descriptor(int fd) noexcept;
/// Registers `duplicate` after dup(). For descriptors 0 to 2, which belong to stdio, the file is released.
void register_duplicate(int fd, int duplicate) noexcept;
/// fcntl(F_SETFL) is about to change the flags.
void apply_flag_change(int fd, int flags) noexcept;

}  // namespace sonde::buffer
