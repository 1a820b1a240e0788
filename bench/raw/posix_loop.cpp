// SPDX-License-Identifier: Apache-2.0
// pread and pwrite in a loop, and what all loops share: the file, the order, the buffer.
#include "raw.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <random>

namespace sonde::bench {

namespace {

[[noreturn]] void failed(const Task& task, ssize_t moved) {
    throw RawError("an operation on " + task.file + " moved " + std::to_string(moved) +
                   " bytes: " + std::strerror(errno));
}

/// The loop under comparison. A template, so that nothing is decided inside. `mask` chooses where in the buffer a
/// transfer lies by its offset. A function of its own, so that its instructions can be counted apart.
template <bool write>
[[gnu::noinline]] void pass(const Task& task, int descriptor, std::byte* buffer, std::size_t mask,
                            const std::vector<std::uint32_t>& order) {
    const auto transfer = static_cast<ssize_t>(task.transfer);
    for (const std::uint32_t slot : order) {
        const off_t offset = static_cast<off_t>(slot) * transfer;
        const ssize_t moved =
            write ? ::pwrite(descriptor, buffer + (static_cast<std::size_t>(offset) & mask), task.transfer, offset)
                  : ::pread(descriptor, buffer, task.transfer, offset);
        if (moved != transfer) {
            failed(task, moved);
        }
    }
}

}  // namespace

int open_file(const Task& task) {
    const int flags = O_RDWR | O_CLOEXEC | (task.direct ? O_DIRECT : 0) | (task.fresh ? O_CREAT | O_TRUNC : 0);
    const int descriptor = ::open(task.file.c_str(), flags, 0644);
    if (descriptor < 0) {
        throw RawError("cannot open " + task.file + ": " + std::strerror(errno));
    }
    return descriptor;
}

std::vector<std::uint32_t> order_of(const Task& task) {
    std::vector<std::uint32_t> order(task.size / task.transfer);
    for (std::uint32_t i = 0; i < order.size(); ++i) {
        order[i] = i;
    }
    if (task.random) {
        std::shuffle(order.begin(), order.end(), std::mt19937_64(1));
    }
    return order;
}

double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double thread_cpu() {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

std::shared_ptr<std::byte> buffer_of(std::size_t bytes) {
    constexpr std::size_t page = 4096;
    auto* memory = static_cast<std::byte*>(std::aligned_alloc(page, (bytes + page - 1) / page * page));
    if (memory == nullptr) {
        throw RawError("no memory for " + std::to_string(bytes) + " bytes");
    }
    std::mt19937_64 random(1);
    for (std::size_t position = 0; position + sizeof(std::uint64_t) <= bytes; position += sizeof(std::uint64_t)) {
        const std::uint64_t word = random();
        std::memcpy(memory + position, &word, sizeof word);
    }
    return {memory, std::free};
}

Count posix_loop(const Task& task) {
    const int descriptor = open_file(task);
    const auto buffer = buffer_of(task.data + task.transfer);
    const std::size_t mask = task.data > 0 ? task.data - 1 : 0;
    const auto order = order_of(task);
    Count count;
    const double cpu = thread_cpu();
    const double begin = now();
    do {
        if (task.write) {
            pass<true>(task, descriptor, buffer.get(), mask, order);
        } else {
            pass<false>(task, descriptor, buffer.get(), mask, order);
        }
        count.operations += order.size();
        count.seconds = now() - begin;
    } while (count.seconds < task.seconds);
    count.cpu_seconds = thread_cpu() - cpu;
    ::close(descriptor);
    return count;
}

}  // namespace sonde::bench
