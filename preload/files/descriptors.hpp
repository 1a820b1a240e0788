// SPDX-License-Identifier: Apache-2.0
// The life of a descriptor: opened, duplicated, closed.
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
/// Adopts the descriptor when a rule covers its file, or when its file is known already.
void adopt_descriptor(const OpenedDescriptor& opening) noexcept;
/// The kernel gave out this number anew: its former owner was closed where the library does not see it.
void forget_stale_descriptor(int fd) noexcept;
/// The rule for a descriptor, by the name it was opened with and the one that the kernel gives it (in `absolute`).
settings::Rule* rule_of(settings::Settings& settings, int fd, const char* path, char (&absolute)[1024]) noexcept;
/// Before close(fd), dup2(x, fd) and the like. 0, or the error (positive errno) that close() must report.
int detach_descriptor(int fd) noexcept;
/// After `made` became a duplicate of `fd`. Descriptors 0 to 2 belong to stdio: the file is released.
void register_duplicate(int fd, int duplicate) noexcept;
/// fcntl(F_SETFL) is about to change the flags.
void apply_flag_change(int fd, int flags) noexcept;

}  // namespace sonde::buffer
