// SPDX-License-Identifier: Apache-2.0
// Small calls gathered between two system calls of a process.
//
// A *stretch* is a part of a program's run in which it makes no system call but the small reads, or the small writes,
// of one file that we answer. During a stretch nobody can learn from this process how far it is, and it can learn
// nothing from others: it has one thread, shares no memory, and messages, signals, clocks of others, other files all
// need system calls. So its writes may reach the kernel at the end of the stretch, in one piece, and its reads may all
// be answered by what the kernel had at the moment of the first one: each is what would have happened had the program
// been a little slower, or a little faster. Whoever looks cannot tell. What ends a stretch is the program's next system
// call, before it is made (trap.hpp), a handler, a fault, or 0.2 seconds.
//
// Within a stretch there is one file and one direction, writes follow each other, and no byte is read twice: several
// files could be seen in an order in which the program did not write them, a read could pass a write, and a program
// that waits for a byte to change would wait for ever.
#pragma once

#include "stretch/stream.hpp"

#include <sys/types.h>
#include <cstddef>

namespace sonde::stretch {

struct Piece {
    char* data;
    std::size_t bytes;
};
inline constexpr std::size_t most_of_a_piece = 1U << 30U;
inline constexpr std::int64_t here = -1;  ///< at the offset of the descriptor, which moves

enum class Way : unsigned char {
    Done,   ///< `value` is the result
    Plain,  ///< make the real call
    First,  ///< make the real call and tell first_written() what came of it
    Timed,  ///< as Plain, and wants_time(): tell note_time() how long it took; said by callers of read() and write()
};
struct Entry {
    Way way;
    ssize_t value;  ///< bytes, or a negative errno
};

/// The calls that reach storage through the next library in line; like those of libc.
struct Roads {
    ssize_t (*read_at)(int, void*, std::size_t, off64_t) = nullptr;
    ssize_t (*write)(int, const void*, std::size_t) = nullptr;
    ssize_t (*write_at)(int, const void*, std::size_t, off64_t) = nullptr;
};
/// `when_ready` is called once, before the first stretch.
void start_gathering(const Roads& roads, settings::Settings& settings, void (*when_ready)() noexcept) noexcept;

Entry write(Stream& stream, int fd, const Piece* pieces, std::size_t count, std::int64_t at) noexcept;
void first_written(Stream& stream, int fd, std::size_t bytes, std::int64_t at, ssize_t got, std::uint64_t ns) noexcept;
Entry read(Stream& stream, int fd, const Piece* pieces, std::size_t count, std::int64_t at) noexcept;
Entry seek(Stream& stream, int fd, std::int64_t offset, int whence) noexcept;

/// How many calls in a row are wanted before the real ones are timed.
bool wants_time(Stream& stream) noexcept;
void note_time(Stream& stream, bool writes, std::uint64_t ns) noexcept;

/// Ends the stretch, if there is one: the kernel has everything afterwards.
void settle(bool trapped = false) noexcept;
/// setrlimit(RLIMIT_FSIZE) may have changed.
void read_size_limit() noexcept;
/// In the child of a fork.
void gathering_after_fork() noexcept;
/// The process ends: nothing is gathered any more.
void end_gathering() noexcept;

}  // namespace sonde::stretch
