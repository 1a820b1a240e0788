// SPDX-License-Identifier: Apache-2.0
#include "buffer/shared_memory.hpp"

#include "buffer/processes.hpp"
#include "buffer/state.hpp"
#include "buffer/table.hpp"

#include <sys/stat.h>
#include <atomic>

namespace sonde::buffer {

namespace {

struct Mapped {
    dev_t device = 0;
    ino_t inode = 0;
};
constexpr unsigned most_mapped = 64;
constinit Mapped mapped[most_mapped] = {};
constinit std::atomic<unsigned> mapped_files{0};  ///< noted so far; the oldest ones are overwritten
constinit std::atomic<bool> shares{false};
constinit std::atomic<bool> shares_nameless{false};  ///< memory that reaches others by fork alone
constinit system::Lock mapped_lock;

}  // namespace

void note_shared_map(int fd) noexcept {
    if (table == nullptr) {
        return;
    }
    const system::Critical critical;
    shares.store(true, std::memory_order_relaxed);
    if (fd < 0) {
        shares_nameless.store(true, std::memory_order_relaxed);
    }
    struct stat got {};
    if (fd < 0 || raw::call(SYS_fstat, fd, raw::number(&got)) != 0) {
        return;
    }
    system::Hold hold(mapped_lock);
    const unsigned number = mapped_files.load(std::memory_order_relaxed);
    mapped[number % most_mapped] = {got.st_dev, got.st_ino};
    mapped_files.store(number + 1, std::memory_order_relaxed);
}

void note_range_lock(int fd) noexcept {
    if (mapped_files.load(std::memory_order_relaxed) == 0 || state.retired.load(std::memory_order_relaxed)) {
        return;
    }
    const system::Critical critical;
    struct stat got {};
    if (raw::call(SYS_fstat, fd, raw::number(&got)) != 0) {
        return;
    }
    bool is_mapped = false;
    {
        system::Hold hold(mapped_lock);
        for (const Mapped& one : mapped) {
            is_mapped |= one.inode == got.st_ino && one.device == got.st_dev;
        }
    }
    if (is_mapped) {
        retire("the program locks parts of a file that it has mapped to write, as processes of a database do");
    }
}

void shared_memory_after_fork(bool child) noexcept {
    if (child) {
        mapped_lock.reset();
    }
    if ((child ? shares : shares_nameless).load(std::memory_order_relaxed)) {
        retire(child ? "it shares memory with the process that forked it, as processes of a database do"
                     : "it shares memory with a process that it forked, as processes of a database do");
    }
}

}  // namespace sonde::buffer
