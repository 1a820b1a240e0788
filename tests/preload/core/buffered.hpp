// SPDX-License-Identifier: Apache-2.0
// Calls the buffer without preloading: opens, reads, writes and closes files on storage that can fail.
#pragma once

#include "cache/dirty_pages.hpp"
#include "cache/profitability.hpp"
#include "cache/work_queue.hpp"
#include "files/buffer.hpp"
#include "guards/node_locks.hpp"
#include "model/file.hpp"
#include "model/registry.hpp"
#include "modes/lease_breaks.hpp"
#include "workers/pool.hpp"
#include "workers/tasks.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace under_test {

using namespace sonde;

inline std::atomic<int> failing_writes{0};  ///< that many writes below fail with ENOSPC

inline ssize_t write_below(int fd, const void* data, std::size_t bytes, off64_t offset) {
    int remaining = failing_writes.load();
    while (remaining > 0 && !failing_writes.compare_exchange_weak(remaining, remaining - 1)) {
    }
    if (remaining > 0) {
        errno = ENOSPC;
        return -1;
    }
    return pwrite64(fd, data, bytes, offset);
}

inline std::atomic<bool> slow_storage{false};

inline ssize_t read_below(int fd, void* data, std::size_t bytes, off64_t offset) {
    if (slow_storage) {
        usleep(2000);
    }
    return pread64(fd, data, bytes, offset);
}

/// Disables leases, because other accesses of a test to the file would break them.
inline settings::Settings& use(const char* params, bool leases = false) {
    static std::vector<std::unique_ptr<settings::Settings>> all_settings;  // files may outlive a test
    all_settings.push_back(std::make_unique<settings::Settings>());
    settings::read_params(params, *all_settings.back(), [](const char*) {});
    all_settings.back()->limits.uses_leases = leases;
    buffer::start_buffering({.pread = read_below, .pwrite = write_below}, *all_settings.back(), -1, nullptr);
    return *all_settings.back();
}

/// Ends the threads that an earlier test started, which would otherwise write during this test.
inline void stop_pool() {
    buffer::stop_workers();
    {
        const system::LockGuard lock_guard(buffer::pool.lock);
        REQUIRE(buffer::pool.running_threads == 0);
    }
    buffer::reset_workers_after_fork();
}

/// Runs `answers` in a child process, so that its changes of process-wide state stay there, and returns its answer. The
/// child does not lock files in the name of its parent: these locks would stay after its end.
template <class Answers>
bool in_child(Answers answers) {
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        buffer::reset_node_locks_after_fork();
        _exit(answers() ? 0 : 1);
    }
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status));
    REQUIRE(WEXITSTATUS(status) <= 1);
    return WEXITSTATUS(status) == 0;
}

struct Folder {
    std::string path = [] {
        char name[] = "/tmp/sonde-buffer-XXXXXX";
        return std::string(mkdtemp(name));
    }();
    ~Folder() {
        const int ignored = std::system(("rm -rf " + path).c_str());
        static_cast<void>(ignored);
    }
};

inline int open_buffered(const std::string& path, int flags) {
    const int fd = open(path.c_str(), flags, 0644);
    buffer::adopt_descriptor({.fd = fd, .flags = flags, .path = path.c_str()});
    REQUIRE(buffer::is_watched_descriptor(fd));
    return fd;
}

/// Returns the registered file of a buffered descriptor.
inline buffer::File& file_of(int fd) {
    return *buffer::table[fd].load()->file.load();
}

inline int close_buffered(int fd) {
    const int error = buffer::detach_descriptor(fd);
    close(fd);
    return error;
}

/// Reads like the intercepted calls: bypasses the buffer while the file is suspended.
template <class Real>
bool went_past(int fd, ssize_t& got, Real real) {
    buffer::BypassSlot* slot = buffer::enter_bypass(fd);
    if (slot == nullptr) {
        return false;
    }
    got = real();
    buffer::leave_bypass(*slot);
    return true;
}

inline ssize_t done(const buffer::CallResult& answer, ssize_t (*real)(int, void*, std::size_t, off64_t), int fd,
                    void* data, std::size_t bytes, off64_t offset) {
    if (answer.is_done) {
        return answer.value;
    }
    return buffer::make_real_call(answer, [&] { return real(fd, data, bytes, offset); });
}

inline ssize_t read_at(int fd, char* data, std::size_t bytes, off64_t offset) {
    ssize_t got = 0;
    if (went_past(fd, got, [&] { return pread64(fd, data, bytes, offset); })) {
        return got;
    }
    const buffer::IoPart part{data, bytes};
    return done(buffer::read(fd, &part, 1, offset), pread64, fd, data, bytes, offset);
}

inline ssize_t write_at(int fd, char* data, std::size_t bytes, off64_t offset) {
    ssize_t got = 0;
    if (went_past(fd, got, [&] { return pwrite64(fd, data, bytes, offset); })) {
        return got;
    }
    const buffer::IoPart part{data, bytes};
    return done(
        buffer::write(fd, &part, 1, offset),
        [](int to, void* from, std::size_t count, off64_t where) { return pwrite64(to, from, count, where); }, fd, data,
        bytes, offset);
}

/// Profitability decides for each file, as with `auto`, but with the pages that `params` names and without watching.
inline settings::Settings& use_measured(const char* params, bool leases = false) {
    settings::Settings& settings = use(params, leases);
    for (std::size_t i = 0; i < settings.rule_count; ++i) {
        settings.rules[i].may_suspend = true;
    }
    return settings;
}

inline std::string contents(const std::string& path) {
    const int fd = open(path.c_str(), O_RDONLY);
    std::string all(static_cast<std::size_t>(lseek(fd, 0, SEEK_END)), '\0');
    REQUIRE(pread(fd, all.data(), all.size(), 0) == static_cast<ssize_t>(all.size()));
    close(fd);
    return all;
}

}  // namespace under_test
