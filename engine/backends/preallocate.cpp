// SPDX-License-Identifier: Apache-2.0
// Knows ftruncate(2) and fallocate(2).
#include "backends/preallocate.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <limits>

namespace sonde::backends {

namespace {

/// Tasks that share a file all come here: only ever growing makes the order in which they do it irrelevant.
int grow(int descriptor, off_t bytes) {
    struct stat status {};
    if (::fstat(descriptor, &status) != 0) {
        return -errno;
    }
    if (status.st_size >= bytes) {
        return 0;
    }
    while (::ftruncate(descriptor, bytes) != 0) {
        if (errno != EINTR) {
            return -errno;
        }
    }
    return 0;
}

int reserve(int descriptor, int mode, off_t bytes) {
    while (::fallocate(descriptor, mode, 0, bytes) != 0) {
        if (errno != EINTR) {
            return -errno;
        }
    }
    return 0;
}

}  // namespace

int preallocate(int descriptor, plan::Preallocate kind, std::uint64_t bytes) {
    if (kind == plan::Preallocate::none || bytes == 0) {
        return 0;
    }
    if (bytes > static_cast<std::uint64_t>(std::numeric_limits<off_t>::max())) {
        return -EFBIG;
    }
    const auto length = static_cast<off_t>(bytes);
    switch (kind) {
        case plan::Preallocate::truncate:
            return grow(descriptor, length);
        case plan::Preallocate::fallocate:
            return reserve(descriptor, 0, length);
        case plan::Preallocate::unwritten:
            return reserve(descriptor, FALLOC_FL_KEEP_SIZE, length);
        case plan::Preallocate::none:
            break;
    }
    return 0;
}

}  // namespace sonde::backends
