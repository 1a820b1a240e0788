// SPDX-License-Identifier: Apache-2.0
// An open file whose operations are one call of pread or pwrite each. The hottest loop calls through this and not
// through its channel: that spares the saving of registers and the passing of an operation through memory.
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

    /// One system call: bytes moved; negative when retry_if_interrupted() is to say what became of it.
    template <bool write>
    std::int64_t transfer_once(std::byte* buffer, std::uint32_t length, std::uint64_t offset) const noexcept {
        const auto position = static_cast<off_t>(offset);
        return write ? ::pwrite(descriptor_, buffer, length, position) : ::pread(descriptor_, buffer, length, position);
    }
    /// `moved` of the call just made, which is repeated as long as a signal interrupts it: bytes moved or -errno.
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
