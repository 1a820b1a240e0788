// SPDX-License-Identifier: Apache-2.0
// Opens data files for backends that use file descriptors: with the same flags, so that rates can be compared.
#pragma once

#include "backends/backend.hpp"
#include "plan/plan.hpp"

#include <cstdint>

namespace sonde::backends {

/// Flags for open(2): access mode, O_CREAT, O_TRUNC, O_EXCL and O_NOFOLLOW as requested, O_DIRECT, O_DSYNC or O_SYNC as
/// the plan says, always O_CLOEXEC. O_TRUNC and the sync flags are only given to files opened for writing.
int open_flags(const plan::Io& io, const OpenRequest& request);

/// Opens `request.path` below `request.root` with open_flags() and mode 0666 less the umask, and preallocates
/// `request.size` bytes when the plan asks for it and the file is opened for writing. A file descriptor or -errno.
/// Retries EINTR.
int open_file(const plan::Io& io, const OpenRequest& request);

/// close(2): 0 or -errno; the descriptor is closed either way.
int close_file(int descriptor);

/// fsync(2): 0 or -errno, retries EINTR.
int sync_file(int descriptor);

/// Prepares the first `bytes` bytes of an open file: truncate sets the size (and never makes a file smaller), fallocate
/// reserves blocks and sets the size, unwritten reserves blocks beyond the size. 0 or -errno; -EOPNOTSUPP where the
/// file system has no fallocate (nothing is emulated by writing zeros). Retries EINTR.
int preallocate(int descriptor, plan::Preallocate kind, std::uint64_t bytes);

}  // namespace sonde::backends
