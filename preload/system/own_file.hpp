// SPDX-License-Identifier: Apache-2.0
// Opens files of the library in folders that others may write: never through a link, never a file of another user.
#pragma once

#include "system/raw.hpp"

#include <fcntl.h>
#include <sys/stat.h>

namespace sonde::system {

/// Opens `path` for writing (O_CLOEXEC), with `flags` (O_CREAT, too) besides. A negative errno when it is a link,
/// belongs to another user, has other names, or is no regular file; nothing is emptied or written then.
inline long open_own_file(const char* path, int flags, int mode) noexcept {
    const int truncate = flags & O_TRUNC;
    const long fd = raw::call(SYS_openat, AT_FDCWD, raw::pointer_to_number(path),
                              (flags & ~O_TRUNC) | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, mode);
    if (fd < 0) {
        return fd;
    }
    struct stat status {};
    const long error = raw::call(SYS_fstat, fd, raw::pointer_to_number(&status));
    if (error != 0 || !S_ISREG(status.st_mode) || status.st_nlink != 1 ||
        status.st_uid != static_cast<uid_t>(raw::call(SYS_geteuid)) || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        raw::call(SYS_close, fd);
        return -13;  // EACCES
    }
    if (truncate != 0) {
        raw::call(SYS_ftruncate, fd, 0);
    }
    return fd;
}

}  // namespace sonde::system
