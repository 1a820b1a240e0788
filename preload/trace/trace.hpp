// SPDX-License-Identifier: Apache-2.0
// Counts the calls of a program on its files without changing them: counters per file and a bounded list of events.
#pragma once

#include "system/clock.hpp"
#include "system/critical.hpp"

#include <sys/types.h>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace sonde::trace {

/// Same order as the names in writer.cpp and in schema/trace.
enum class Kind : std::uint8_t { Open, Read, Write, Seek, Stat, Sync, Truncate, Map, Close, Name, Other, count };

struct OpenDescription;
inline constexpr int max_descriptors = 1 << 20;
extern std::atomic<OpenDescription*>* table;  ///< nullptr while nothing is traced

inline bool is_traced_descriptor(int fd) noexcept {
    return table != nullptr && static_cast<unsigned>(fd) < max_descriptors &&
           table[fd].load(std::memory_order_relaxed) != nullptr && !system::Critical::is_in_library();
}
int get_highest_traced_descriptor() noexcept;
inline bool is_tracing() noexcept {
    return table != nullptr;
}

/// `folder` receives one file a process when it ends. `events`: how many single calls are kept.
void start_tracing(const char* folder, std::size_t events) noexcept;
void record_open(int fd, int flags, const char* path, std::uint64_t began) noexcept;
void record_close(int fd, std::uint64_t began) noexcept;  ///< after close() succeeded
void record_duplicate(int fd, int duplicate) noexcept;
inline constexpr std::int64_t current_offset = -1;
/// A read or write of `requested` bytes returned `result`. `offset` may be `current_offset`.
void record_transfer(int fd, Kind kind, std::size_t requested, ssize_t result, std::int64_t offset, const void* memory,
                     std::uint64_t began) noexcept;
void record_seek(int fd, std::int64_t result, std::uint64_t began) noexcept;
/// Any other call on a descriptor.
void record_call(int fd, Kind kind, std::uint64_t began) noexcept;
/// A call on a path.
void record_named_call(Kind kind, std::uint64_t began) noexcept;

void restart_trace_in_child() noexcept;
/// Writes the trace file of this process. `again`: the process may continue (failed exec); the next call rewrites the
/// file.
void write_trace() noexcept;

}  // namespace sonde::trace
