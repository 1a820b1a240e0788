// SPDX-License-Identifier: Apache-2.0
// Knows open(2) and its flags; nothing of transfers.
#include "backends/open_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <limits>

namespace sonde::backends {

namespace {

/// Whether an open file is the block device of that number, and not what has got its name since it was checked.
bool is_device(int descriptor, std::uint64_t number) {
    struct stat status {};
    return ::fstat(descriptor, &status) == 0 && S_ISBLK(status.st_mode) && status.st_rdev == number;
}

int access_mode(const OpenRequest& request) {
    if (!request.write) {
        return O_RDONLY;
    }
    return request.read ? O_RDWR : O_WRONLY;
}

}  // namespace

int open_flags(const plan::Io& io, const OpenRequest& request) {
    int flags = access_mode(request) | O_CLOEXEC;
    if (request.create) {
        flags |= O_CREAT;
    }
    if (request.exclusive) {
        flags |= O_CREAT | O_EXCL;
    }
    if (request.no_follow) {
        flags |= O_NOFOLLOW;
    }
    if (io.direct) {
        flags |= O_DIRECT;
    }
    if (!request.write) {
        return flags;
    }
    if (request.truncate) {
        flags |= O_TRUNC;
    }
    if (io.sync_flag == plan::SyncFlag::o_dsync) {
        flags |= O_DSYNC;
    } else if (io.sync_flag == plan::SyncFlag::o_sync) {
        flags |= O_SYNC;
    }
    return flags;
}

int open_file(const plan::Io& io, const OpenRequest& request) {
    constexpr mode_t mode = 0666;
    const char* const below_root = request.path.c_str() + std::min(request.relative_path_begin, request.path.size());
    int descriptor = -1;
    do {
        descriptor = ::openat(request.root, below_root, open_flags(io, request), mode);
    } while (descriptor < 0 && errno == EINTR);
    if (descriptor < 0) {
        return -errno;
    }
    if (request.device != 0 && !is_device(descriptor, request.device)) {
        ::close(descriptor);
        return -ENODEV;
    }
    if (request.write) {
        const int failed = preallocate(descriptor, io.preallocate, request.size);
        if (failed != 0) {
            ::close(descriptor);
            return failed;
        }
    }
    return descriptor;
}

int close_file(int descriptor) {
    // After EINTR Linux has released the descriptor already: a second close could hit a file that another thread
    // opened.
    return ::close(descriptor) == 0 || errno == EINTR ? 0 : -errno;
}

int sync_file(int descriptor) {
    while (::fsync(descriptor) != 0) {
        if (errno != EINTR) {
            return -errno;
        }
    }
    return 0;
}

namespace {

/// Tasks that share a file all come here: only ever growing makes the order in which they do it irrelevant.
int extend_file(int descriptor, off_t bytes) {
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

int reserve_blocks(int descriptor, int mode, off_t bytes) {
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
            return extend_file(descriptor, length);
        case plan::Preallocate::fallocate:
            return reserve_blocks(descriptor, 0, length);
        case plan::Preallocate::unwritten:
            return reserve_blocks(descriptor, FALLOC_FL_KEEP_SIZE, length);
        case plan::Preallocate::none:
            break;
    }
    return 0;
}

}  // namespace sonde::backends
