// SPDX-License-Identifier: Apache-2.0
// The life of a descriptor: opened, duplicated, closed.
#pragma once

#include "settings/params.hpp"

#include <sys/stat.h>

namespace sonde::buffer {

struct OpenedByMpi;

/// What a descriptor is that was just opened: asked once for all who want to know.
struct Seen {
    bool asked = false;
    bool regular = false;
    bool by_the_program = false;     ///< itself, not by a library that does more with the file
    bool brief = false;              ///< by its name: left alone, and the name that the kernel gives it was not asked
    settings::Rule* rule = nullptr;  ///< for its name; nullptr where none counts
    struct stat status;
    char absolute[1024];  ///< the name that the kernel gives it, or ""
};
/// Fills `seen`, unless that was done.
void see(Seen& seen, settings::Settings& settings, int fd, const char* path) noexcept;

/// `fd` has just been opened with `flags` as `path`. Adopts it when a rule covers it, or when its file is known
/// already. With a `reason` its file is not buffered as long as the descriptor is open. What MPI-IO has opened is
/// buffered for one rank, for reading alone, or when the user says that the ranks' parts are disjoint.
void adopt(int fd, int flags, const char* path, const char* reason = nullptr, const OpenedByMpi* mpi = nullptr,
           Seen* seen = nullptr) noexcept;
/// The rule for a descriptor, by the name it was opened with and the one that the kernel gives it (in `absolute`).
settings::Rule* rule_of(settings::Settings& settings, int fd, const char* path, char (&absolute)[1024]) noexcept;
/// Before close(fd), dup2(x, fd) and the like. 0, or the error (positive errno) that close() must report.
int detach(int fd) noexcept;
/// After `made` became a duplicate of `fd`. Descriptors 0 to 2 belong to stdio: the file is let go for good.
void duplicated(int fd, int made) noexcept;
/// Buffering of this file ends for good; the reason is for the report.
void let_go(int fd, const char* reason) noexcept;
void let_go_of(dev_t device, ino_t inode, const char* reason) noexcept;
/// The program locks a part of the file for its process.
void note_lock(int fd) noexcept;
/// The program has got a lock on the file or a part of it, and must find what others wrote before.
void lock_taken(int fd) noexcept;
/// fcntl(F_SETFL) is about to change the flags.
void flags_change(int fd, int flags) noexcept;

}  // namespace sonde::buffer
