// SPDX-License-Identifier: Apache-2.0
// Descriptors that are known, and what is told of them at the end.
#include "buffer/descriptors.hpp"
#include "buffer/files.hpp"
#include "buffer/report.hpp"
#include "stretch/gather.hpp"
#include "stretch/trap.hpp"
#include "system/clock.hpp"
#include "system/critical.hpp"
#include "system/memory.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <algorithm>
#include <cstring>

namespace sonde::stretch {

constinit std::atomic<Stream*>* streams = nullptr;

namespace {

struct Known {
    settings::Settings* settings = nullptr;
    bool wants_lines = false;
    system::Slab<Stream> slab;
    std::atomic<int> highest{0};
    std::atomic<std::uint32_t> shares{0};
};
constinit Known known;

/// Why its calls are left as they are, or nullptr.
const char* unfit(int fd, int flags) noexcept {
    if (fd <= 2) {
        return "a standard stream";
    }
    return (flags & (O_DIRECT | O_SYNC | O_DSYNC)) != 0 ? "opened with O_DIRECT or O_SYNC" : nullptr;
}

/// One sentence for who could gain more, or nothing.
const char* advice(const Stream& stream) noexcept {
    const buffer::Statistics& counted = stream.statistics;
    const std::uint64_t calls = counted.read.asked + counted.write.asked;
    constexpr std::uint64_t many = 200;
    if (calls < many || (counted.read.asked_bytes + counted.write.asked_bytes) / calls >= stream.rule->size ||
        stream.gathered * 2 > calls) {
        return nullptr;
    }
    if (stream.by_mpi) {
        return "MPI shares memory with others. If ranks write, and read, only their own parts of this file, say "
               "mpiio=disjoint; if one rank has it for itself, alone.";
    }
    return "Most of its calls were made as they are, because the program does other things in between. If no other "
           "process looks at this file before it is closed, or synchronized, say alone.";
}

void report(Stream& stream) noexcept {
    const char* why = stream.stopped != nullptr ? stream.stopped : nullptr;
    if (why == nullptr && stream.gathered == 0 && stream.statistics.read.asked + stream.statistics.write.asked > 0) {
        why = why_no_trap();
    }
    const char* sentence = advice(stream);
    buffer::report_lines({.path = stream.path,
                          .rule = *stream.rule,
                          .page_bytes = stream.rule->size,
                          .opened_ns = stream.opened_ns,
                          .gathered = stream.gathered,
                          .statistics = stream.statistics,
                          .why = why,
                          .advice = sentence});
}

void release(int fd, Stream& stream) noexcept {
    streams[fd].store(nullptr, std::memory_order_release);
    report(stream);
    known.slab.give(&stream);
}

}  // namespace

void start_streams(settings::Settings& settings, bool wants_lines) noexcept {
    known.wants_lines = wants_lines;
    known.settings = &settings;
    // 8 MiB of addresses; memory only for the part that descriptors reach.
    streams = static_cast<std::atomic<Stream*>*>(system::map_bytes(sizeof(*streams) * most_descriptors, true));
}

bool take_on(int fd, int flags, const char* path, const char* reason, bool by_mpi) noexcept {
    const system::Critical critical;
    if (streams == nullptr || static_cast<unsigned>(fd) >= most_descriptors) {
        return false;
    }
    if (Stream* stale = stream_of(fd)) {
        release(fd, *stale);  // closed where we do not look
    }
    char absolute[1024];
    settings::Rule* rule =
        (flags & (O_PATH | O_DIRECTORY)) == 0 ? buffer::rule_of(*known.settings, fd, path, absolute) : nullptr;
    struct stat got {};
    if (rule == nullptr || rule->promised() || (by_mpi && rule->mpi_disjoint) ||
        raw::call(SYS_fstat, fd, raw::number(&got)) != 0 || !S_ISREG(got.st_mode) || !buffer::file_system_allows(fd)) {
        return false;
    }
    Stream* made = known.slab.take();
    if (made == nullptr) {
        return false;
    }
    Stream* const next = made->next_free;
    *made = Stream{};
    made->next_free = next;
    made->rule = rule;
    made->device = got.st_dev;
    made->inode = got.st_ino;
    made->share = share_count();
    made->stopped = reason != nullptr ? reason : unfit(fd, flags);
    made->may = made->stopped == nullptr;
    made->is_timed = rule->verbose || known.wants_lines;
    made->by_mpi = by_mpi;
    made->opened_ns = system::now_ns();
    const char* name = absolute[0] == '/' ? absolute : path;
    std::memcpy(made->path, name, std::min(std::strlen(name), sizeof(made->path) - 1));
    int most = known.highest.load(std::memory_order_relaxed);
    while (fd > most && !known.highest.compare_exchange_weak(most, fd, std::memory_order_relaxed)) {
    }
    streams[fd].store(made, std::memory_order_release);
    return true;
}

int give_up(int fd) noexcept {
    const system::Critical critical;
    settle();
    Stream* stream = stream_of(fd);
    if (stream == nullptr) {
        return 0;
    }
    const int error = stream->error;
    release(fd, *stream);
    return error;
}

void leave_alone(int fd, const char* reason) noexcept {
    if (Stream* stream = stream_of(fd)) {
        stream->stopped = reason;
        stream->may = false;
    }
}

int highest_stream() noexcept {
    return known.highest.load(std::memory_order_relaxed);
}

void note_sharing() noexcept {
    known.shares.fetch_add(1, std::memory_order_relaxed);
}

std::uint32_t share_count() noexcept {
    return known.shares.load(std::memory_order_relaxed);
}

void report_streams() noexcept {
    const system::Critical critical;
    for (int fd = 0; streams != nullptr && fd <= highest_stream(); ++fd) {
        if (Stream* stream = stream_of(fd)) {
            report(*stream);
            stream->statistics = {};
        }
    }
}

}  // namespace sonde::stretch
