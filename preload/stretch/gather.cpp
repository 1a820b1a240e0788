// SPDX-License-Identifier: Apache-2.0
#include "stretch/gather.hpp"

#include "stretch/paying.hpp"
#include "stretch/trap.hpp"
#include "system/clock.hpp"
#include "system/critical.hpp"
#include "system/memory.hpp"
#include "system/raw.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <algorithm>
#include <cerrno>
#include <cstring>

namespace sonde::stretch {

namespace {

constexpr std::size_t room_in_memory = 128U << 10U;  ///< of the processor's second cache
constexpr std::size_t least_room = 64U << 10U;
constexpr std::size_t most_room = 16U << 20U;
constexpr std::uint64_t space_look_bytes = 16U << 20U;
constexpr std::int64_t farthest = 1LL << 42U;  ///< no file system that we take on ends before
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
constinit Stretch stretch;
constinit Roads roads;
std::size_t memory_most = 0;
bool size_limited = false;
bool ended = false;

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

/// The descriptor is still that of the file it was opened for: it may have been closed where we do not look.
bool is_the_same(const Stream& stream, int fd) noexcept {
    struct stat now {};
    return raw::call(SYS_fstat, fd, raw::number(&now)) == 0 && now.st_dev == stream.device &&
           now.st_ino == stream.inode && now.st_size < farthest;
}

/// What is accepted now must not be refused later for lack of space.
bool space_is_low(Stream& stream, int fd) noexcept {
    if (stream.bytes_since_look != 0 && stream.bytes_since_look < space_look_bytes) {
        return false;
    }
    stream.bytes_since_look = 1;
    struct statfs about {};
    if (raw::call(SYS_fstatfs, fd, raw::number(&about)) != 0 || about.f_blocks == 0) {
        return false;  // nobody knows
    }
    return static_cast<std::uint64_t>(about.f_bavail) * static_cast<std::uint64_t>(about.f_bsize) <
           space_look_bytes + 2 * most_room;
}

bool begin(Stream& stream, int fd, bool writes, std::int64_t at) noexcept {
    if (!know(stream, fd)) {
        return false;
    }
    if (!is_the_same(stream, fd)) {
        stream.stopped = "its descriptor was closed or replaced where it could not be seen";
        wait_longer(stream);
        return false;
    }
    if (writes && (size_limited || space_is_low(stream, fd))) {
        stream.stopped =
            size_limited ? "the size of files is limited (RLIMIT_FSIZE)" : "the file system is nearly full";
        wait_longer(stream);
        return false;
    }
    if (!has_room(stream) || !set_trap()) {
        wait_longer(stream);
        return false;
    }
    stretch.stream = &stream;
    stretch.fd = fd;
    stretch.writes = writes;
    stretch.placed = at != here;
    stretch.begin = at;
    stretch.bytes = stretch.used = stretch.load = 0;
    stretch.gathered = stretch.calls_below = 0;
    stretch.awaits_first = writes;
    return true;
}

/// What is pending, in as few calls as the kernel wants. 0 or a positive errno; what is left then is lost, and the
/// error is told by the next call that can.
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

/// The same while the stretch goes on: our own calls go through the next library in line, which the trap must let pass.
int hand_over_meanwhile() noexcept {
    open_trap();
    const std::uint64_t began = system::now_ns();
    const int error = hand_over(false);
    counted(*stretch.stream).write.below_ns += system::now_ns() - began;
    return error;
}

void count(buffer::Direction& direction, std::size_t bytes, std::int64_t at, std::int64_t next) noexcept {
    ++direction.asked;
    direction.asked_bytes += bytes;
    ++direction.sizes[system::size_class(bytes)];
    direction.consecutive += at == here || at == next ? 1 : 0;
    direction.unaligned += at != here && at % 4096 != 0 ? 1 : 0;
}

std::size_t sum(const Piece* pieces, std::size_t number) noexcept {
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < number; ++i) {
        bytes += pieces[i].bytes;
    }
    return bytes;
}

bool is_memory(const Piece* pieces, std::size_t number) noexcept {
    for (std::size_t i = 0; i < number; ++i) {
        const auto address = reinterpret_cast<std::uintptr_t>(pieces[i].data);
        if (pieces[i].bytes > 0 && (address < 65536 || address > (~std::uintptr_t{0} >> 1U))) {
            return false;  // EFAULT is the kernel's to say
        }
    }
    return true;
}

/// Fills the window from `at` on; bytes, or a negative errno. Nothing is left of what was there.
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

void give(const Piece* pieces, std::size_t number, std::size_t bytes) noexcept {
    for (std::size_t i = 0; i < number && bytes > 0; ++i) {
        const std::size_t part = std::min(pieces[i].bytes, bytes);
        std::memcpy(pieces[i].data, stretch.data + stretch.used, part);
        stretch.used += part;
        bytes -= part;
    }
}

/// The part of a read in an open stretch. Plain when the real call must tell what is wrong.
Entry read_on(Stream& stream, const Piece* pieces, std::size_t number, std::size_t bytes) noexcept {
    std::size_t left = stretch.bytes - stretch.used;
    if (left < bytes) {
        const ssize_t got = load(stretch.begin + static_cast<std::int64_t>(stretch.used), bytes);
        if (got < 0) {
            settle();
            return {Way::Plain, 0};
        }
        left = static_cast<std::size_t>(got);
    } else {
        ++stretch.gathered;
        ++counted(stream).read.hits;
    }
    const std::size_t given = std::min(left, bytes);
    give(pieces, number, given);
    close_trap();
    return {Way::Done, static_cast<ssize_t>(given)};
}

}  // namespace

void start_gathering(const Roads& given, settings::Settings& settings, void (*when_ready)() noexcept) noexcept {
    roads = given;
    gather_always(settings.limits.gather_always);
    memory_most = settings.limits.memory;
    prepare_trap(settle, when_ready);
    read_size_limit();
}

Entry write(Stream& stream, int fd, const Piece* pieces, std::size_t number, std::int64_t at) noexcept {
    const system::Critical critical;
    const std::size_t bytes = sum(pieces, number);
    const std::int64_t next = stream.next_at;
    count(counted(stream).write, bytes, at, next);
    if (stretch.stream != nullptr) {
        const std::int64_t follows = stretch.placed ? stretch.begin + static_cast<std::int64_t>(stretch.bytes) : here;
        if (stretch.stream != &stream || stretch.fd != fd || !stretch.writes || at != follows || time_is_up() ||
            bytes == 0 || bytes > stretch.room / 4 || !is_memory(pieces, number)) {
            settle();
        } else {
            if (stretch.bytes + bytes > stretch.room) {
                const int error = hand_over_meanwhile();
                if (error != 0) {
                    settle();
                    return {Way::Done, -error};
                }
            }
            for (std::size_t i = 0; i < number; ++i) {
                std::memcpy(stretch.data + stretch.bytes, pieces[i].data, pieces[i].bytes);
                stretch.bytes += pieces[i].bytes;
            }
            ++stretch.gathered;
            ++counted(stream).write.hits;
            stream.next_at = at == here ? here : at + static_cast<std::int64_t>(bytes);
            close_trap();
            return {Way::Done, static_cast<ssize_t>(bytes)};
        }
    }
    if (stream.error != 0) {
        const int error = stream.error;
        stream.error = 0;
        return {Way::Done, -error};
    }
    ++counted(stream).write.below;
    counted(stream).write.below_bytes += bytes;
    if (!long_enough(stream, bytes, at) || ended || !begin(stream, fd, true, at)) {
        return {Way::Plain, 0};
    }
    return {Way::First, 0};
}

void first_written(Stream& stream, int fd, std::size_t bytes, std::int64_t at, ssize_t got, std::uint64_t ns) noexcept {
    const system::Critical critical;
    note_time(stream, true, ns);
    if (!stretch.awaits_first || stretch.stream != &stream || stretch.fd != fd) {
        return;  // a handler of the program came in between
    }
    stretch.awaits_first = false;
    if (got != static_cast<ssize_t>(bytes)) {
        settle();
        return;
    }
    if (at != here) {
        stretch.begin = at + got;
    }
    start_clock();
    close_trap();
}

Entry read(Stream& stream, int fd, const Piece* pieces, std::size_t number, std::int64_t at) noexcept {
    const system::Critical critical;
    const std::size_t bytes = sum(pieces, number);
    count(counted(stream).read, bytes, at, stream.next_at);
    if (stretch.stream != nullptr) {
        const std::int64_t follows = stretch.placed ? stretch.begin + static_cast<std::int64_t>(stretch.used) : here;
        if (stretch.stream == &stream && stretch.fd == fd && !stretch.writes && at == follows && !time_is_up() &&
            bytes != 0 && bytes <= stretch.room / 4 && is_memory(pieces, number)) {
            stream.next_at = at == here ? here : at + static_cast<std::int64_t>(bytes);
            return read_on(stream, pieces, number, bytes);
        }
        settle();
    }
    ++counted(stream).read.below;
    counted(stream).read.below_bytes += bytes;  // near the end of the file less
    const bool own = at != here || stream.share == share_count();
    if (!own || !long_enough(stream, bytes, at) || ended || !is_memory(pieces, number) ||
        !begin(stream, fd, false, at)) {
        return {Way::Plain, 0};
    }
    if (at == here) {
        stretch.begin = raw::call(SYS_lseek, fd, 0, SEEK_CUR);
        if (stretch.begin < 0) {
            stretch.stream = nullptr;
            take_trap_away();
            return {Way::Plain, 0};
        }
    }
    stretch.load = bytes;
    --counted(stream).read.below;
    counted(stream).read.below_bytes -= bytes;
    const Entry entry = read_on(stream, pieces, number, bytes);
    if (stretch.stream != nullptr) {
        start_clock();
    }
    return entry;
}

Entry seek(Stream& stream, int fd, std::int64_t offset, int whence) noexcept {
    const system::Critical critical;
    ++counted(stream).seeks;
    stream.next_at = here;
    if (stretch.stream != &stream || stretch.fd != fd || stretch.writes || stretch.placed ||
        (whence != SEEK_SET && whence != SEEK_CUR)) {
        if (stretch.stream == nullptr && whence != SEEK_CUR) {
            stream.in_a_row = 0;
        }
        return {Way::Plain, 0};
    }
    const std::int64_t now = stretch.begin + static_cast<std::int64_t>(stretch.used);
    std::int64_t target = whence == SEEK_SET ? offset : 0;
    if ((whence == SEEK_CUR && __builtin_add_overflow(now, offset, &target)) || target < 0 || target > farthest) {
        return {Way::Plain, 0};
    }
    if (target >= now && target <= stretch.begin + static_cast<std::int64_t>(stretch.bytes)) {
        stretch.used = static_cast<std::size_t>(target - stretch.begin);
    } else {
        stretch.begin = target;
        stretch.bytes = stretch.used = 0;
        stretch.load = 0;
    }
    ++stretch.gathered;
    return {Way::Done, static_cast<ssize_t>(target)};
}

void settle(bool trapped) noexcept {
    const system::Critical critical;
    Stream* stream = stretch.stream;
    if (stream == nullptr) {
        return;
    }
    open_trap();
    if (stretch.writes) {
        const std::uint64_t began = trapped ? 0 : system::now_ns();
        const int error = stretch.bytes > 0 ? hand_over(trapped) : 0;
        stream->error = error != 0 ? error : stream->error;
        counted(*stream).write.below_ns += trapped ? 0 : system::now_ns() - began;
        counted(*stream).write.below += stretch.calls_below;
    } else {
        if (!stretch.placed) {
            raw::call(SYS_lseek, stretch.fd, stretch.begin + static_cast<std::int64_t>(stretch.used), SEEK_SET);
        }
        counted(*stream).read.below += stretch.calls_below;
    }
    if (stream->told != nullptr) {
        stream->told->gathered += stretch.gathered;
    }
    judge(*stream, stretch.gathered, harmless_calls() + (trapped ? 1 : 0), time_is_up());
    stretch.stream = nullptr;
    stretch.awaits_first = false;
    take_trap_away();
}

void read_size_limit() noexcept {
    struct rlimit limit {};
    size_limited =
        raw::call(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, raw::number(&limit)) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

void gathering_after_fork() noexcept {
    stretch.stream = nullptr;
    trap_after_fork();
}

void end_gathering() noexcept {
    settle();
    ended = true;
}

}  // namespace sonde::stretch
