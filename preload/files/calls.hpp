// SPDX-License-Identifier: Apache-2.0
// Reads, writes and seeks through the buffer.
#pragma once

#include "model/bypass.hpp"
#include "model/table.hpp"
#include "system/clock.hpp"

#include <pthread.h>
#include <cstddef>
#include <cstdint>

namespace sonde::buffer {

/// One memory region of a call, as an iovec.
struct IoPart {
    char* data;
    std::size_t bytes;
};
/// Result of an operation that the buffer may leave to the kernel.
struct CallResult {
    bool is_done;             ///< false: make the real call with make_real_call()
    File* pass_through_file;  ///< file whose call to the kernel is counted as in flight
    ssize_t value;            ///< >= 0, or a negative errno
    int direction = -1;       ///< as a call that moves data: 0 reads, 1 writes
    int watched_fd = -1;      ///< the descriptor, when the call is counted for the choice of `auto`
    std::int64_t offset = -1;
};
inline constexpr std::int64_t current_offset = -1;  ///< at the offset of the description, which moves
/// Counts a call on a file whose settings are not chosen yet: its result and its duration.
void record_watched_call(const CallResult& answer, std::int64_t result, std::uint64_t ns) noexcept;
/// Fast path for a suspended file. If it returns a slot, the caller makes the real call, then calls leave_bypass().
inline BypassSlot* enter_bypass(int fd) noexcept {
    const Description* description = table[fd].load(std::memory_order_acquire);
    return description != nullptr ? enter_bypass(description->file.load(std::memory_order_acquire)) : nullptr;
}
/// Returns whether the file was released, so that only the real call is needed.
inline bool is_released(int fd) noexcept {
    const Description* description = table[fd].load(std::memory_order_acquire);
    const File* file = description != nullptr ? description->file.load(std::memory_order_acquire) : nullptr;
    return file != nullptr && file->mode.load(std::memory_order_acquire) == Mode::Released;
}
CallResult read(int fd, const IoPart* parts, std::size_t count, std::int64_t offset) noexcept;
CallResult write(int fd, const IoPart* parts, std::size_t count, std::int64_t offset) noexcept;
CallResult seek(int fd, std::int64_t offset, int whence) noexcept;
/// Makes the real call if the buffer did not execute it. Disables cancellation meanwhile, because the file counts it.
template <class Real>
auto make_real_call(const CallResult& answer, Real real) noexcept(false) {
    if (answer.pass_through_file == nullptr) {
        return real();
    }
    int cancel = 0;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    const std::uint64_t began = answer.watched_fd >= 0 ? system::now_ns() : 0;
    const auto result = real();
    if (answer.watched_fd < 0 && answer.direction >= 0) {
        BypassedCounts& passed = answer.pass_through_file->bypassed;
        passed.calls[answer.direction].fetch_add(1, std::memory_order_relaxed);
        passed.bytes[answer.direction].fetch_add(static_cast<std::uint64_t>(result > 0 ? result : 0),
                                                 std::memory_order_relaxed);
    }
    answer.pass_through_file->pass_through_calls.fetch_sub(1, std::memory_order_seq_cst);
    pthread_setcancelstate(cancel, nullptr);
    if (answer.watched_fd >= 0) [[unlikely]] {
        record_watched_call(answer, static_cast<std::int64_t>(result), system::now_ns() - began);
    }
    return result;
}

}  // namespace sonde::buffer
