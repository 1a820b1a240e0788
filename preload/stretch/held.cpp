// SPDX-License-Identifier: Apache-2.0
#include "stretch/held.hpp"

#include "stretch/paying.hpp"
#include "stretch/trap.hpp"
#include "system/clock.hpp"
#include "system/memory.hpp"
#include "system/raw.hpp"

#include <cerrno>

namespace sonde::stretch {

constinit Stretch stretch;

namespace {

constexpr std::size_t room_in_memory = 128U << 10U;  ///< of the processor's second cache
constexpr std::size_t least_room = 64U << 10U;

constinit Roads roads;
std::size_t memory_most = 0;

}  // namespace

void start_holding(const Roads& given, std::size_t memory) noexcept {
    roads = given;
    memory_most = memory;
}

bool has_room(const Stream& stream) noexcept {
    const std::size_t wanted = calls_are_dear(stream) ? stream.rule->size : room_in_memory;
    const std::size_t room = std::clamp<std::size_t>(std::min<std::size_t>(wanted, stream.rule->size), least_room,
                                                     std::max(least_room, std::min(most_room, memory_most)));
    if (room > stretch.capacity) {
        if (stretch.data != nullptr) {
            system::unmap_bytes(stretch.data, stretch.capacity);
        }
        stretch.data = static_cast<char*>(system::map_bytes(room));
        stretch.capacity = stretch.data != nullptr ? room : 0;
    }
    stretch.room = room;
    return stretch.data != nullptr;
}

int hand_over(bool trapped) noexcept {
    std::size_t done = 0;
    int error = 0;
    while (done < stretch.bytes && error == 0) {
        const char* from = stretch.data + done;
        const std::size_t left = stretch.bytes - done;
        const std::int64_t at = stretch.begin + static_cast<std::int64_t>(done);
        ssize_t got = 0;
        if (trapped) {
            got = stretch.placed ? raw::call(SYS_pwrite64, stretch.fd, raw::number(from), static_cast<long>(left), at)
                                 : raw::call(SYS_write, stretch.fd, raw::number(from), static_cast<long>(left));
        } else {
            const int kept = errno;
            got = stretch.placed ? roads.write_at(stretch.fd, from, left, at) : roads.write(stretch.fd, from, left);
            got = got < 0 ? -errno : got;
            errno = kept;
        }
        if (got > 0) {
            done += static_cast<std::size_t>(got);
        } else if (got != -EINTR) {
            error = got == 0 ? EIO : static_cast<int>(-got);
        }
        ++stretch.calls_below;
    }
    counted(*stretch.stream).write.below_bytes += done;
    stretch.begin += static_cast<std::int64_t>(done);
    stretch.stream->bytes_since_look += done;
    stretch.bytes = 0;
    return error;
}

int hand_over_meanwhile() noexcept {
    open_trap();
    const std::uint64_t began = system::now_ns();
    const int error = hand_over(false);
    counted(*stretch.stream).write.below_ns += system::now_ns() - began;
    return error;
}

ssize_t load(std::int64_t at, std::size_t wanted) noexcept {
    open_trap();
    stretch.load = std::min(stretch.room, std::max(wanted, stretch.load * 4));
    const int kept = errno;
    const std::uint64_t began = system::now_ns();
    ssize_t got = 0;
    do {
        got = roads.read_at(stretch.fd, stretch.data, stretch.load, at);
        got = got < 0 ? -errno : got;
    } while (got == -EINTR);
    errno = kept;
    buffer::Direction& reads = counted(*stretch.stream).read;
    reads.below_ns += system::now_ns() - began;
    reads.below_bytes += static_cast<std::uint64_t>(std::max<ssize_t>(got, 0));
    ++stretch.calls_below;
    stretch.begin = at;
    stretch.used = 0;
    stretch.bytes = static_cast<std::size_t>(std::max<ssize_t>(got, 0));
    return got;
}

}  // namespace sonde::stretch
