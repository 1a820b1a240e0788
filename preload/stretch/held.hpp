// SPDX-License-Identifier: Apache-2.0
// What the open stretch holds between the program and the kernel, and how it comes and goes. When that may be is
// gather.cpp's.
#pragma once

#include "stretch/gather.hpp"

#include <unistd.h>
#include <algorithm>
#include <cstring>

namespace sonde::stretch {

inline constexpr std::size_t most_room = 16U << 20U;  ///< bytes that a stretch holds at most

struct Stretch {
    Stream* stream = nullptr;  ///< nullptr: there is no stretch
    int fd = -1;
    bool writes = false;
    bool awaits_first = false;  ///< the first real write is under way
    bool placed = false;        ///< at places that the program gives; else at the offset of the descriptor
    std::int64_t begin = 0;     ///< place of data[0] in the file; not known for writes at the offset
    std::size_t bytes = 0;      ///< written and not handed over; or loaded
    std::size_t used = 0;       ///< of what was loaded: given to the program
    std::size_t load = 0;       ///< bytes of the last load
    std::uint32_t gathered = 0;
    std::uint32_t calls_below = 0;
    char* data = nullptr;
    std::size_t room = 0;      ///< of this stretch
    std::size_t capacity = 0;  ///< of `data`
};
extern constinit Stretch stretch;

/// Nothing is gathered, and nobody reads or waits for what is known of this file.
inline bool is_nobodys(const Stream& stream) noexcept {
    return stretch.stream == nullptr && stream.told == nullptr && stream.error == 0;
}

/// A call at a place where none was expected, or the first one at the offset: read() and write() would let it through,
/// and note no more than this does.
inline bool begins_nothing(Stream& stream, std::size_t bytes, std::int64_t at) noexcept {
    if (!is_nobodys(stream)) {
        return false;
    }
    if (at == here) {
        if (stream.in_a_row != 0 || bytes == 0 || bytes > most_of_an_early_call || times_the_first(stream)) {
            return false;
        }
        stream.next_at = here;
        stream.in_a_row = 1;
        return true;
    }
    if (at == stream.next_at) {
        return false;
    }
    stream.next_at = at + static_cast<std::int64_t>(bytes);
    stream.in_a_row = 0;
    return true;
}

/// The same for a change of the offset.
inline bool moves_nothing(Stream& stream, int whence) noexcept {
    if (!is_nobodys(stream)) {
        return false;
    }
    stream.next_at = here;
    stream.in_a_row = whence != SEEK_CUR ? 0 : stream.in_a_row;
    return true;
}

/// Before the first stretch; `memory` is what all buffers may have, in bytes.
void start_holding(const Roads& roads, std::size_t memory) noexcept;
/// Gets the memory for a stretch of this stream; false when there is none.
bool has_room(const Stream& stream) noexcept;
/// Hands over what is pending, in as few calls as the kernel wants. 0 or a positive errno; what is left then is lost,
/// and the error is told by the next call that can. `trapped`: by bare system calls alone.
int hand_over(bool trapped) noexcept;
/// The same while the stretch goes on: our own calls go through the next library in line, which the trap must let pass.
int hand_over_meanwhile() noexcept;
/// Puts what a write brings, for which there is room, behind what is pending.
inline void take(const Piece* pieces, std::size_t number) noexcept {
    for (std::size_t i = 0; i < number; ++i) {
        std::memcpy(stretch.data + stretch.bytes, pieces[i].data, pieces[i].bytes);
        stretch.bytes += pieces[i].bytes;
    }
}
/// Fills the memory from `at` on, with `wanted` bytes or more; bytes, or a negative errno. Nothing is left of what was
/// there.
ssize_t load(std::int64_t at, std::size_t wanted) noexcept;
/// The next `bytes` of what was loaded.
inline void give(const Piece* pieces, std::size_t number, std::size_t bytes) noexcept {
    for (std::size_t i = 0; i < number && bytes > 0; ++i) {
        const std::size_t part = std::min(pieces[i].bytes, bytes);
        std::memcpy(pieces[i].data, stretch.data + stretch.used, part);
        stretch.used += part;
        bytes -= part;
    }
}

}  // namespace sonde::stretch
