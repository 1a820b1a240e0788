// SPDX-License-Identifier: Apache-2.0
// An open file whose operations are one call of pread or pwrite each. The hottest loop calls these functions directly
// instead of Channel::transfer(), which saves a virtual call and the copy of the operation to memory.
#pragma once

#include <unistd.h>
#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace sonde::backends {

class SyscallFile {
 public:
    SyscallFile() = default;  ///< none
    explicit SyscallFile(int descriptor) : descriptor_(descriptor) {}
    explicit operator bool() const noexcept { return descriptor_ >= 0; }

    /// Makes one system call. Returns the transferred bytes, or a negative value: then retry_if_interrupted() must be
    /// called.
    template <bool write>
    std::int64_t transfer_once(std::byte* buffer, std::uint32_t length, std::uint64_t offset) const noexcept {
        const auto position = static_cast<off_t>(offset);
        return write ? ::pwrite(descriptor_, buffer, length, position) : ::pread(descriptor_, buffer, length, position);
    }
    /// Repeats a call that returned `moved` as long as signals interrupt it. Returns the transferred bytes or -errno.
    template <bool write>
    [[gnu::noinline, gnu::cold]] std::int64_t retry_if_interrupted(std::int64_t moved, std::byte* buffer,
                                                                   std::uint32_t length,
                                                                   std::uint64_t offset) const noexcept {
        while (moved < 0 && errno == EINTR) {
            moved = transfer_once<write>(buffer, length, offset);
        }
        return moved < 0 ? -errno : moved;
    }

 private:
    int descriptor_ = -1;
};

}  // namespace sonde::backends
