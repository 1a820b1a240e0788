// SPDX-License-Identifier: Apache-2.0
// The barest loops over the system calls that the engine makes: no clock, no meter, no check but of the result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace sonde::bench {

/// One sentence for the user; exit code 3.
struct RawError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct Task {
    std::string file;
    bool write = false;
    bool direct = false;
    bool fresh = false;              ///< the measured pass writes a new file; else the file is there already
    bool random = false;             ///< each pass visits every slot once, in a fixed random order
    std::size_t transfer = 4096;     ///< bytes
    std::size_t size = 128U << 20U;  ///< of the file, bytes; a multiple of transfer
    std::size_t data = 0;  ///< bytes of different data to write, a power of two; 0 = one buffer, always the same
    double seconds = 0;    ///< passes are repeated until this time is over; 0 = one pass
    unsigned depth = 0;    ///< io_uring with that many operations in flight; 0 = pread and pwrite
};

struct Count {
    std::uint64_t operations = 0;
    double seconds = 0;
    double cpu_seconds = 0;  ///< of this thread in the same time
};

/// Opens the file of the task; throws RawError.
int open_file(const Task& task);
/// Slots of one pass in the order they are visited; made before the clock starts.
std::vector<std::uint32_t> order_of(const Task& task);
double now();
/// Processor time of this thread, seconds.
double thread_cpu();
/// Page-aligned memory with random bytes.
std::shared_ptr<std::byte> buffer_of(std::size_t bytes);

Count posix_loop(const Task& task);
Count uring_loop(const Task& task);

/// Runs a program, waits, and writes its exit code, peak memory and processor times to `out` as one JSON line. Returns
/// the exit code.
int run_child(const std::string& out, std::span<char*> arguments);

}  // namespace sonde::bench
