// SPDX-License-Identifier: Apache-2.0
// Gives a file its size or its blocks before the first byte is written.
#pragma once

#include "plan/plan.hpp"

#include <cstdint>

namespace sonde::backends {

/// Prepares the first `bytes` bytes of an open file: truncate sets the size (and never makes a file smaller), fallocate
/// reserves blocks and sets the size, unwritten reserves blocks beyond the size. 0 or -errno; -EOPNOTSUPP where the
/// file system has no fallocate (nothing is emulated by writing zeros). Retries EINTR.
int preallocate(int descriptor, plan::Preallocate kind, std::uint64_t bytes);

}  // namespace sonde::backends
