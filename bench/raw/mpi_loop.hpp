// SPDX-License-Identifier: Apache-2.0
// What the bare loops over libraries of file formats share: passes over a dataset, a clock around them, the program.
// A loop gives its library as a class with `Dataset(const Task&)`, which creates the file; `write(offset, from)` and
// `read(offset, into)` of one transfer; and `close()`.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>

namespace sonde::bench {

/// One sentence for the user; exit code 3.
struct LoopError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct Task {
    const char* file;
    std::uint64_t transfer, size, data;  ///< bytes
    double seconds;
    bool collective;
};

/// The loop under comparison. A template, so that nothing is decided inside.
template <bool is_write, class Dataset>
[[gnu::noinline]] std::uint64_t pass(const Task& task, Dataset& dataset, std::byte* buffer) {
    for (std::uint64_t offset = 0; offset < task.size; offset += task.transfer) {
        if constexpr (is_write) {
            dataset.write(offset, buffer + (offset & (task.data - 1)));
        } else {
            dataset.read(offset, buffer);
        }
    }
    return task.size / task.transfer;
}

inline double read_thread_cpu() {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

/// Passes for the time of the task; one pass where it is 0. Returns the result as JSON.
template <bool is_write, class Dataset>
std::string run_passes(const Task& task, Dataset& dataset, std::byte* buffer) {
    const double begin = MPI_Wtime(), cpu_begin = read_thread_cpu();
    double seconds = 0, operations = 0;
    do {
        operations += static_cast<double>(pass<is_write>(task, dataset, buffer));
        seconds = MPI_Wtime() - begin;
    } while (seconds < task.seconds);
    const double cpu_ns = (read_thread_cpu() - cpu_begin) / operations * 1e9;
    return "{\"rate\": " + std::to_string(operations / seconds) + ", \"cpu_ns\": " + std::to_string(cpu_ns) + "}";
}

/// Page-aligned memory with random bytes.
inline std::shared_ptr<std::byte> make_buffer(std::size_t bytes) {
    constexpr std::size_t page = 4096;
    auto* const memory = static_cast<std::byte*>(std::aligned_alloc(page, (bytes + page - 1) / page * page));
    if (memory == nullptr) {
        throw LoopError("no memory for the data");
    }
    std::mt19937_64 random(1);
    for (std::size_t position = 0; position < bytes; position += sizeof(std::uint64_t)) {
        const std::uint64_t value = random();
        std::memcpy(memory + position, &value, sizeof value);
    }
    return {memory, std::free};
}

/// Fills the dataset, then rewrites and reads it, and prints what both gave.
template <class Dataset>
void run_task(const Task& task) {
    const std::shared_ptr<std::byte> buffer = make_buffer(task.data + task.transfer);
    Dataset dataset(task);
    pass<true>(task, dataset, buffer.get());
    const std::string rewrite = run_passes<true>(task, dataset, buffer.get());
    const std::string read = run_passes<false>(task, dataset, buffer.get());
    dataset.close();
    std::printf("{\"rewrite\": %s, \"read\": %s}\n", rewrite.c_str(), read.c_str());
}

/// The program `name`; its exit code.
template <class Dataset>
int run_program(const char* name, int count, char** arguments) {
    MPI_Init(&count, &arguments);
    int result = 0;
    try {
        if (count != 7) {
            throw LoopError("the arguments are FILE TRANSFER SIZE DATA SECONDS COLLECTIVE");
        }
        run_task<Dataset>({arguments[1], std::strtoull(arguments[2], nullptr, 10),
                           std::strtoull(arguments[3], nullptr, 10), std::strtoull(arguments[4], nullptr, 10),
                           std::strtod(arguments[5], nullptr), arguments[6][0] == '1'});
    } catch (const std::exception& failure) {
        std::fprintf(stderr, "%s: %s.\n", name, failure.what());
        result = 3;
    }
    MPI_Finalize();
    return result;
}

}  // namespace sonde::bench
