// SPDX-License-Identifier: Apache-2.0
// A ring of the kernel (io_uring) by bare system calls, for one thread. No polling thread of the kernel, which burns a
// core; no registered buffers, which count against the locked memory of the user on the whole node; and its memory is
// not there in the child of a fork.
#pragma once

#include <atomic>
#include <cstdint>

namespace sonde::system {

/// The call that makes a ring: its descriptor or a negative errno. Tests put one in its place that refuses.
extern long (*ring_setup)(unsigned entries, void* parameters);

class Ring {
 public:
    static constexpr unsigned entries = 64;

    /// 0, or a negative errno: not allowed here, not there, or too old for what we need (then -EOPNOTSUPP). Its
    /// descriptor is `lowest` or higher.
    int open(int lowest) noexcept;
    /// In the child of a fork: the descriptor is closed, the memory is gone already.
    void forget() noexcept;
    bool is_open() const noexcept { return fd_ >= 0; }
    int descriptor() const noexcept { return fd_; }

    /// At most `entries` may be under way. `id` comes back with the result. Nothing happens before enter().
    void transfer(bool write, int fd, void* data, std::uint32_t bytes, std::int64_t at, std::uint64_t id) noexcept;
    void poll(int fd, std::uint64_t id) noexcept;
    /// Submits, and waits for a result, for no longer than that. `wait_ns` 0: does not wait.
    void enter(std::int64_t wait_ns) noexcept;
    /// The next result, >= 0 or a negative errno; false when there is none yet.
    bool result(std::uint64_t& id, std::int32_t& got) noexcept;

 private:
    struct Submission;
    struct Completion;
    Submission& next_submission() noexcept;
    bool supports_what_we_need() const noexcept;

    int fd_ = -1;
    char* map_ = nullptr;
    std::uint64_t map_bytes_ = 0;
    Submission* submissions_ = nullptr;
    Completion* completions_ = nullptr;
    std::uint32_t *submit_tail_ = nullptr, *submit_array_ = nullptr;
    std::uint32_t *complete_head_ = nullptr, *complete_tail_ = nullptr;
    std::uint32_t submit_mask_ = 0, complete_mask_ = 0;
    std::uint32_t filled_ = 0;  ///< not submitted yet
};

}  // namespace sonde::system
