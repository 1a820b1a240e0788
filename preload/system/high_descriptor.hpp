// SPDX-License-Identifier: Apache-2.0
// Descriptors of our own lie high, where a program that counts on the lowest free number does not see them.
#pragma once

#include "system/raw.hpp"

#include <fcntl.h>
#include <sys/resource.h>

namespace sonde::system {

inline constexpr int first_private = 700;

/// A duplicate of `fd` with a high number, closed by exec; where descriptors are limited to less, near the limit. -1
/// when there is none.
inline int duplicate_to_high_descriptor(int fd) noexcept {
    long duplicate = raw::call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, first_private);
    struct rlimit limit {};
    if (duplicate < 0 && raw::call(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, raw::pointer_to_number(&limit)) == 0 &&
        limit.rlim_cur > 24) {
        duplicate = raw::call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, static_cast<long>(limit.rlim_cur) - 12);
    }
    return static_cast<int>(duplicate >= 0 ? duplicate : -1);
}

}  // namespace sonde::system
