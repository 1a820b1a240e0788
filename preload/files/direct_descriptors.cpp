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
constexpr std::uint64_t min_free_share = 16;
constinit std::atomic<int> open_direct_descriptors{0};

bool has_spare_descriptors(int fd) noexcept {
    struct rlimit limit {};
    return raw::call(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, raw::pointer_to_number(&limit)) == 0 &&
           static_cast<std::uint64_t>(fd) < limit.rlim_cur / 2 &&
           static_cast<std::uint64_t>(open_direct_descriptors.load(std::memory_order_relaxed)) <
               limit.rlim_cur / min_free_share;
}

/// A descriptor of our own for the file behind `fd`, or -1. Opened anew: the flags of the program's are its own. Stays
/// open until the program has closed all of its own, because with any close() the locks of the process go away.
int open_direct(int fd, int access) noexcept {
    const DescriptorName name(fd);
    const long opened_fd =
        raw::call(SYS_openat, AT_FDCWD, raw::pointer_to_number(name.text), access | O_DIRECT | O_CLOEXEC);
    if (opened_fd < 0) {
        return -1;
    }
    // Uses a high number, because programs may expect the lowest free number from their next open().
    const long high = system::duplicate_to_high_descriptor(static_cast<int>(opened_fd));
    raw::call(SYS_close, opened_fd);
    if (high >= 0) {
        mark_own_descriptor(static_cast<int>(high));
        open_direct_descriptors.fetch_add(1, std::memory_order_relaxed);
    }
    return static_cast<int>(high >= 0 ? high : -1);
}

void close_direct_descriptor(int& fd) noexcept {
    if (fd >= 0) {
        unmark_own_descriptor(fd);
        raw::call(SYS_close, fd);
        open_direct_descriptors.fetch_sub(1, std::memory_order_relaxed);
        fd = -1;
    }
}

}  // namespace

int count_direct_descriptors() noexcept {
    return open_direct_descriptors.load(std::memory_order_relaxed);
}

void open_direct_descriptors_of(File& file, int fd, bool reads, bool writes) noexcept {
    if (!has_spare_descriptors(fd)) {
        return;
    }
    file.descriptors.direct_alignment = 4096;
    file.descriptors.direct_read_fd =
        file.descriptors.direct_read_fd < 0 && reads ? open_direct(fd, O_RDONLY) : file.descriptors.direct_read_fd;
    file.descriptors.direct_write_fd =
        file.descriptors.direct_write_fd < 0 && writes ? open_direct(fd, O_WRONLY) : file.descriptors.direct_write_fd;
}

void close_direct_descriptors_of(File& file) noexcept {
    close_direct_descriptor(file.descriptors.direct_read_fd);
    close_direct_descriptor(file.descriptors.direct_write_fd);
}

}  // namespace sonde::buffer
