// SPDX-License-Identifier: Apache-2.0
#include "stretch/paying.hpp"

#include "stretch/gather.hpp"
#include "stretch/trap.hpp"

#include <algorithm>

namespace sonde::stretch {

namespace {

/// Larger calls gain nothing where a call is answered from memory.
constexpr std::size_t small_in_memory = 8U << 10U;
/// A call that takes longer than this, and a nanosecond a byte, is dear: the call itself, not the data.
constexpr std::uint64_t dear_call_ns = 10'000;
constexpr std::uint32_t calls_when_dear = 4;  ///< in a row, before a stretch is tried where calls are dear
// Which of the calls in a row are timed: one before those on dear storage are gathered, and some before all others are.
constexpr std::uint32_t first_timed = calls_when_dear - 1;
constexpr std::uint32_t timed_again = 10;
constexpr std::uint32_t longest_wait = 1U << 16U;
// What a stretch costs, counted in small calls that are answered from memory.
constexpr std::uint32_t cost_of_a_stretch = 8;
constexpr std::uint32_t cost_of_a_trap = 14;

constinit bool always = false;

bool is_dear(const Stream& stream, std::size_t bytes) noexcept {
    return stream.call_ns > dear_call_ns + bytes;
}

bool is_small(const Stream& stream, std::size_t bytes) noexcept {
    return bytes != 0 && bytes <= (is_dear(stream, bytes) ? stream.rule->size / 4 : small_in_memory);
}

}  // namespace

void gather_always(bool yes) noexcept {
    always = yes;
}

bool calls_are_dear(const Stream& stream) noexcept {
    return stream.call_ns > dear_call_ns;
}

bool long_enough(Stream& stream, std::size_t bytes, std::int64_t at) noexcept {
    const bool follows = at == here || at == stream.next_at;
    stream.next_at = at == here ? here : at + static_cast<std::int64_t>(bytes);
    if (!follows || !is_small(stream, bytes)) {
        stream.in_a_row = 0;
        return false;
    }
    const bool first = stream.needed == Stream::first_needed;
    return ++stream.in_a_row >= (first && always                   ? 2
                                 : first && is_dear(stream, bytes) ? calls_when_dear
                                                                   : stream.needed) &&
           stream.may && trap_is_possible();
}

void wait_longer(Stream& stream) noexcept {
    stream.needed = always ? 2 : std::min(stream.needed * 4, longest_wait);
    stream.in_a_row = 0;
}

void judge(Stream& stream, std::uint32_t gathered, std::uint32_t traps, bool took_long) noexcept {
    const std::uint32_t cost = cost_of_a_stretch + cost_of_a_trap * traps;
    if (gathered > (calls_are_dear(stream) ? 0 : 2 * cost) || took_long) {
        stream.needed = 2;
        stream.in_a_row = 0;
    } else {
        wait_longer(stream);
    }
}

bool wants_time(Stream& stream) noexcept {
    const std::uint32_t calls = stream.in_a_row;
    if (stream.told != nullptr) [[unlikely]] {
        return true;
    }
    bool wants = (calls == 1 && times_the_first(stream)) || (calls >= timed_again && calls < Stream::first_needed);
    if (calls == first_timed) {  // the same file is not dear at once: one in eight is enough
        constexpr std::uint8_t seldom = 8;
        wants = stream.call_ns == 0 || calls_are_dear(stream) || ++stream.untimed >= seldom;
        stream.untimed = wants ? 0 : stream.untimed;
    }
    return wants && trap_is_possible();
}

void note_time(Stream& stream, bool writes, std::uint64_t ns) noexcept {
    (writes ? counted(stream).write : counted(stream).read).below_ns += ns;
    stream.call_ns = stream.call_ns == 0 ? ns : stream.call_ns - stream.call_ns / 4 + ns / 4;
}

}  // namespace sonde::stretch
