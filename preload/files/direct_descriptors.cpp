// SPDX-License-Identifier: Apache-2.0
#include "files/direct_descriptors.hpp"

#include "model/state.hpp"
#include "model/table.hpp"
#include "system/high_descriptor.hpp"

#include <fcntl.h>
#include <sys/resource.h>

namespace sonde::buffer {

namespace {

/// Leaves descriptor numbers for calls that the library does not intercept (sockets, pipes).
constexpr std::uint64_t least_share_left = 16;
constinit std::atomic<int> open_ones{0};

bool has_spare_descriptors(int fd) noexcept {
    struct rlimit limit {};
    return raw::call(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, raw::number(&limit)) == 0 &&
           static_cast<std::uint64_t>(fd) < limit.rlim_cur / 2 &&
           static_cast<std::uint64_t>(open_ones.load(std::memory_order_relaxed)) < limit.rlim_cur / least_share_left;
}

/// A descriptor of our own for the file behind `fd`, or -1. Opened anew: the flags of the program's are its own. Stays
/// open until the program has closed all of its own, because with any close() the locks of the process go away.
int open_direct(int fd, int access) noexcept {
    const DescriptorName name(fd);
    const long got = raw::call(SYS_openat, AT_FDCWD, raw::number(name.text), access | O_DIRECT | O_CLOEXEC);
    if (got < 0) {
        return -1;
    }
    // Uses a high number, because programs may expect the lowest free number from their next open().
    const long high = system::high_duplicate(static_cast<int>(got));
    raw::call(SYS_close, got);
    if (high >= 0) {
        mark_own_descriptor(static_cast<int>(high));
        open_ones.fetch_add(1, std::memory_order_relaxed);
    }
    return static_cast<int>(high >= 0 ? high : -1);
}

void close_direct_descriptor(int& fd) noexcept {
    if (fd >= 0) {
        unmark_own_descriptor(fd);
        raw::call(SYS_close, fd);
        open_ones.fetch_sub(1, std::memory_order_relaxed);
        fd = -1;
    }
}

}  // namespace

int count_direct() noexcept {
    return open_ones.load(std::memory_order_relaxed);
}

void add_direct(File& file, int fd, bool reads, bool writes) noexcept {
    if (!has_spare_descriptors(fd)) {
        return;
    }
    file.ends.direct_align = 4096;
    file.ends.direct = file.ends.direct < 0 && reads ? open_direct(fd, O_RDONLY) : file.ends.direct;
    file.ends.direct_out = file.ends.direct_out < 0 && writes ? open_direct(fd, O_WRONLY) : file.ends.direct_out;
}

void remove_direct(File& file) noexcept {
    close_direct_descriptor(file.ends.direct);
    close_direct_descriptor(file.ends.direct_out);
}

}  // namespace sonde::buffer
