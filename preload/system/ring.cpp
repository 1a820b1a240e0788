// SPDX-License-Identifier: Apache-2.0
#include "system/ring.hpp"

#include "system/raw.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <cerrno>
#include <cstring>
#include <initializer_list>

namespace sonde::system {

namespace {

long setup_by_kernel(unsigned entries, void* parameters) {
    return raw::call(SYS_io_uring_setup, entries, raw::number(parameters));
}

// The kernel's own layout (include/uapi/linux/io_uring.h), which older headers do not have.
struct SubmitOffsets {
    std::uint32_t head, tail, mask, entries, flags, dropped, array, reserved;
    std::uint64_t address;
};
struct CompleteOffsets {
    std::uint32_t head, tail, mask, entries, overflow, completions, flags, reserved;
    std::uint64_t address;
};
struct Parameters {
    std::uint32_t submit_entries, complete_entries, flags, thread_cpu, thread_idle, features, wq_fd, reserved[3];
    SubmitOffsets submit;
    CompleteOffsets complete;
};
static_assert(sizeof(Parameters) == 120);

struct Probe {
    std::uint8_t last, count;
    std::uint16_t reserved;
    std::uint32_t more[3];
    struct {
        std::uint8_t op, reserved;
        std::uint16_t flags;
        std::uint32_t more;
    } ops[256];
};

struct WaitLimit {
    std::uint64_t mask;
    std::uint32_t mask_bytes, reserved;
    const void* time;
};
struct Time {
    std::int64_t s, ns;
};

constexpr std::uint32_t one_map = 1U << 0U, no_drop = 1U << 1U, wait_limit = 1U << 8U;
constexpr std::uint32_t enter_wait = 1U << 0U, enter_limit = 1U << 3U;
constexpr long register_probe = 8;
constexpr std::uint8_t op_poll = 6, op_read = 22, op_write = 23;
constexpr long offset_rings = 0, offset_submissions = 0x10000000;

char* map_ring(int fd, std::uint64_t bytes, long offset) noexcept {
    const long got =
        raw::call(SYS_mmap, 0, static_cast<long>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, offset);
    if (got < 0) {
        return nullptr;
    }
    raw::call(SYS_madvise, got, static_cast<long>(bytes), MADV_DONTFORK);
    return reinterpret_cast<char*>(got);
}

}  // namespace

long (*ring_setup)(unsigned entries, void* parameters) = setup_by_kernel;

struct Ring::Submission {
    std::uint8_t op, flags;
    std::uint16_t priority;
    std::int32_t fd;
    std::int64_t at;
    const void* data;
    std::uint32_t bytes, op_flags;
    std::uint64_t id;
    std::uint64_t rest[3];
};
struct Ring::Completion {
    std::uint64_t id;
    std::int32_t got;
    std::uint32_t flags;
};

bool Ring::supports_what_we_need() const noexcept {
    Probe probe{};
    if (raw::call(SYS_io_uring_register, fd_, register_probe, raw::number(&probe), 256) < 0) {
        return false;
    }
    for (const std::uint8_t op : {op_poll, op_read, op_write}) {
        if (op > probe.last || (probe.ops[op].flags & 1U) == 0) {
            return false;
        }
    }
    return true;
}

int Ring::open(int lowest) noexcept {
    static_assert(sizeof(Submission) == 64 && sizeof(Completion) == 16);
    Parameters given{};
    const long fd = ring_setup(entries, &given);
    if (fd < 0) {
        return static_cast<int>(fd);
    }
    const long high = raw::call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, lowest);
    raw::call(SYS_close, fd);
    if (high < 0) {
        return static_cast<int>(high);
    }
    fd_ = static_cast<int>(high);
    constexpr std::uint32_t needed = one_map | no_drop | wait_limit;
    if ((given.features & needed) != needed || !supports_what_we_need()) {
        forget();
        return -EOPNOTSUPP;
    }
    const std::uint64_t submit_bytes = given.submit.array + given.submit_entries * sizeof(std::uint32_t);
    const std::uint64_t complete_bytes = given.complete.completions + given.complete_entries * sizeof(Completion);
    map_bytes_ = submit_bytes > complete_bytes ? submit_bytes : complete_bytes;
    map_ = map_ring(fd_, map_bytes_, offset_rings);
    submissions_ =
        reinterpret_cast<Submission*>(map_ring(fd_, given.submit_entries * sizeof(Submission), offset_submissions));
    if (map_ == nullptr || submissions_ == nullptr) {
        if (map_ != nullptr) {
            raw::call(SYS_munmap, raw::number(map_), static_cast<long>(map_bytes_));
        }
        forget();
        return -ENOMEM;
    }
    const auto word = [this](std::uint32_t offset) { return reinterpret_cast<std::uint32_t*>(map_ + offset); };
    submit_tail_ = word(given.submit.tail);
    submit_array_ = word(given.submit.array);
    submit_mask_ = *word(given.submit.mask);
    complete_head_ = word(given.complete.head);
    complete_tail_ = word(given.complete.tail);
    complete_mask_ = *word(given.complete.mask);
    completions_ = reinterpret_cast<Completion*>(map_ + given.complete.completions);
    return 0;
}

void Ring::forget() noexcept {
    if (fd_ >= 0) {
        raw::call(SYS_close, fd_);
    }
    *this = Ring{};
}

Ring::Submission& Ring::next_submission() noexcept {
    const std::uint32_t tail = *submit_tail_;  // ours alone
    Submission& one = submissions_[tail & submit_mask_];
    std::memset(&one, 0, sizeof(one));
    submit_array_[tail & submit_mask_] = tail & submit_mask_;
    __atomic_store_n(submit_tail_, tail + 1, __ATOMIC_RELEASE);  // read by the kernel in enter(), which follows
    ++filled_;
    return one;
}

void Ring::transfer(bool write, int fd, void* data, std::uint32_t bytes, std::int64_t at, std::uint64_t id) noexcept {
    Submission& one = next_submission();
    one.op = write ? op_write : op_read;
    one.fd = fd;
    one.at = at;
    one.data = data;
    one.bytes = bytes;
    one.id = id;
}

void Ring::poll(int fd, std::uint64_t id) noexcept {
    Submission& one = next_submission();
    one.op = op_poll;
    one.fd = fd;
    one.op_flags = POLLIN;
    one.id = id;
}

void Ring::enter(std::int64_t wait_ns) noexcept {
    const Time time{wait_ns / 1'000'000'000, wait_ns % 1'000'000'000};
    WaitLimit limit{};
    limit.time = &time;
    const bool waits = wait_ns > 0;
    if (filled_ == 0 && !waits) {
        return;
    }
    const long submitted = waits ? raw::call(SYS_io_uring_enter, fd_, filled_, 1, enter_wait | enter_limit,
                                             raw::number(&limit), sizeof(limit))
                                 : raw::call(SYS_io_uring_enter, fd_, filled_);
    if (submitted > 0) {
        filled_ -= static_cast<std::uint32_t>(submitted);  // the rest, if any, with the next call
    }
}

bool Ring::result(std::uint64_t& id, std::int32_t& got) noexcept {
    const std::uint32_t head = *complete_head_;  // ours alone
    if (head == __atomic_load_n(complete_tail_, __ATOMIC_ACQUIRE)) {
        return false;
    }
    const Completion& one = completions_[head & complete_mask_];
    id = one.id;
    got = one.got;
    __atomic_store_n(complete_head_, head + 1, __ATOMIC_RELEASE);
    return true;
}

}  // namespace sonde::system
