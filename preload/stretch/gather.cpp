// SPDX-License-Identifier: Apache-2.0
#include "stretch/gather.hpp"

#include "stretch/held.hpp"
#include "stretch/paying.hpp"
#include "stretch/trap.hpp"
#include "system/clock.hpp"
#include "system/critical.hpp"
#include "system/raw.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <algorithm>

namespace sonde::stretch {

namespace {

constexpr std::uint64_t space_look_bytes = 16U << 20U;
constexpr std::int64_t farthest = 1LL << 42U;  ///< no file system that we take on ends before

bool size_limited = false;
bool ended = false;

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
    start_holding(given, settings.limits.memory);
    gather_always(settings.limits.gather_always);
    prepare_trap(settle, when_ready);
    read_size_limit();
}

Entry write(Stream& stream, int fd, const Piece* pieces, std::size_t number, std::int64_t at) noexcept {
    const system::Critical critical;
    const std::size_t bytes = sum(pieces, number);
    const std::int64_t next = stream.next_at;
    if (stream.told != nullptr) [[unlikely]] {
        count(stream.told->statistics.write, bytes, at, next);
    }
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
            take(pieces, number);
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
    if (stream.told != nullptr) [[unlikely]] {
        count(stream.told->statistics.read, bytes, at, stream.next_at);
    }
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
