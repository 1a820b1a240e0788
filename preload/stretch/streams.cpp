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

constinit std::atomic<Slot>* slots = nullptr;

namespace {

struct Known {
    settings::Settings* settings = nullptr;
    bool is_lazy = false;  ///< no setting asks for anything but gathering: what a file is matters when it is gathered
    system::Slab<Told> told;
    bool wants_lines = false;
    bool is_early = false;  ///< besides, all names have the same rule
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
    const buffer::Statistics& counted = stream.told->statistics;
    const std::uint64_t calls = counted.read.asked + counted.write.asked;
    constexpr std::uint64_t many = 200;
    if (calls < many || (counted.read.asked_bytes + counted.write.asked_bytes) / calls >= stream.rule->size ||
        stream.told->gathered * 2 > calls) {
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
    if (stream.told == nullptr) {
        return;
    }
    const Told& told = *stream.told;
    const char* why = stream.stopped;
    if (why == nullptr && told.gathered == 0 && told.statistics.read.asked + told.statistics.write.asked > 0) {
        why = why_no_trap();
    }
    const char* sentence = advice(stream);
    buffer::report_lines({.path = told.path,
                          .rule = *stream.rule,
                          .page_bytes = stream.rule->size,
                          .opened_ns = told.opened_ns,
                          .gathered = told.gathered,
                          .statistics = told.statistics,
                          .call_ns = stream.call_ns,
                          .stopped = stream.stopped,
                          .why = why,
                          .advice = sentence});
}

void release(int fd, Stream& stream) noexcept {
    slots[fd].store(0, std::memory_order_release);
    report(stream);
    if (stream.told != nullptr) {
        known.told.give(stream.told);
    }
    known.slab.give(&stream);
}

/// Until its own rule is looked up.
constinit settings::Rule any_rule;

/// Its calls are counted from now on, for a report under this name.
void tell(Stream& stream, const char* name) noexcept {
    Told* const told = known.told.take();
    if (told != nullptr) {
        Told* const next = told->next_free;
        *told = Told{};
        told->next_free = next;
        told->opened_ns = system::now_ns();
        std::memcpy(told->path, name, std::min(std::strlen(name), sizeof(told->path) - 1));
        stream.told = told;
    }
}

/// False when no rule covers the file behind `fd`, or the buffer does.
bool is_for_us(int fd, const char* path, buffer::Seen& seen, bool by_mpi) noexcept {
    buffer::see(seen, *known.settings, fd, path);
    const settings::Rule* rule = seen.rule;
    return rule != nullptr && !rule->promised() && !(by_mpi && rule->mpi_disjoint) && buffer::file_system_allows(fd);
}

/// After it was said to be for us.
void fill_in(Stream& stream, const char* path, const buffer::Seen& seen) noexcept {
    settings::Rule* rule = seen.rule;
    stream.rule = rule;
    stream.device = seen.status.st_dev;
    stream.inode = seen.status.st_ino;
    stream.is_known = true;
    if (rule->verbose || known.wants_lines) {
        const char* const given =
            path != nullptr ? path : "";  // a descriptor from elsewhere, and no /proc that names it
        tell(stream, seen.absolute[0] == '/' ? seen.absolute : given);
    }
}

void insert(Slot made, int fd) noexcept {
    int most = known.highest.load(std::memory_order_relaxed);
    while (fd > most && !known.highest.compare_exchange_weak(most, fd, std::memory_order_relaxed)) {
    }
    slots[fd].store(made, std::memory_order_release);
}

Stream* new_stream() noexcept {
    Stream* made = known.slab.take();
    if (made != nullptr) {
        Stream* const next = made->next_free;
        *made = Stream{};
        made->next_free = next;
        made->rule = &any_rule;
    }
    return made;
}

}  // namespace

namespace {

void forget_if_early(int fd) noexcept {
    if (is_early(slot_of(fd))) {
        forget_early(fd);
    }
}

}  // namespace

buffer::Statistics& counted(Stream& stream) noexcept {
    static constinit thread_local buffer::Statistics unread;
    return stream.told != nullptr ? stream.told->statistics : unread;
}

bool know(Stream& stream, int fd) noexcept {
    if (stream.is_known) {
        return true;
    }
    buffer::Seen seen;
    const long flags = raw::call(SYS_fcntl, fd, F_GETFL);
    if (flags < 0 || unfit(fd, static_cast<int>(flags)) != nullptr ||
        !is_for_us(fd, stream.given, seen, stream.by_mpi)) {
        stream.may = false;
    } else {
        fill_in(stream, stream.given, seen);
    }
    return stream.may;
}

void start_streams(settings::Settings& settings, bool wants_lines) noexcept {
    known.wants_lines = wants_lines;
    known.settings = &settings;
    known.is_lazy = !wants_lines && !settings.any_promised();
    for (std::size_t i = 0; i < settings.count; ++i) {
        known.is_lazy = known.is_lazy && !settings.rules[i].verbose && !settings.rules[i].ignore_flush;
    }
    known.is_early = known.is_lazy && !settings.limits.gather_always && settings.count > 0 &&
                     std::strcmp(settings.rules[0].pattern, "*") == 0;
    // 8 MiB of addresses; memory only for the part that descriptors reach.
    slots = static_cast<std::atomic<Slot>*>(system::map_bytes(sizeof(*slots) * most_descriptors, true));
}

bool take_on(int fd, int flags, const char* path, buffer::Seen& seen, const char* reason, bool by_mpi) noexcept {
    const system::Critical critical;
    if (slots == nullptr || static_cast<unsigned>(fd) >= most_descriptors) {
        return false;
    }
    if (Stream* stale = stream_of(fd)) {
        release(fd, *stale);  // closed where we do not look
    }
    const char* const left = reason != nullptr ? reason : unfit(fd, flags);
    if ((flags & (O_PATH | O_DIRECTORY)) != 0) {
        return false;
    }
    if (known.is_early && left == nullptr && path != nullptr && !by_mpi) {
        insert(early_mark | Slot{share_count()} << share_shift, fd);
        return true;
    }
    const std::size_t length = path != nullptr ? std::strlen(path) : sizeof(Stream::given);
    const bool lazy = known.is_lazy && length < sizeof(Stream::given);
    if (lazy && left != nullptr) {
        return false;
    }
    Stream* made = lazy || is_for_us(fd, path, seen, by_mpi) ? new_stream() : nullptr;
    if (made == nullptr) {
        return false;
    }
    made->by_mpi = by_mpi;
    if (lazy) {
        std::memcpy(made->given, path, length + 1);
    } else {
        fill_in(*made, path, seen);
    }
    made->share = share_count();
    made->stopped = left;
    made->may = left == nullptr;
    insert(reinterpret_cast<Slot>(made), fd);
    return true;
}

Stream* make_known(int fd, Slot slot) noexcept {
    const system::Critical critical;
    Stream* made = trap_is_possible() ? new_stream() : nullptr;
    if (made == nullptr) {
        return nullptr;
    }
    made->share = static_cast<std::uint32_t>(slot >> share_shift);
    made->may = true;
    // One less than were seen, so that the next one is timed like the third of any other.
    made->in_a_row = (slot & calls_mask) == few_calls ? static_cast<std::uint32_t>(few_calls / one_call) - 1 : 0;
    if (!slots[fd].compare_exchange_strong(slot, reinterpret_cast<Slot>(made), std::memory_order_acq_rel)) {
        known.slab.give(made);
        return nullptr;
    }
    return made;
}

int give_up(int fd) noexcept {
    const system::Critical critical;
    settle();
    Stream* stream = stream_of(fd);
    if (stream == nullptr) {
        forget_if_early(fd);
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
    } else {
        forget_if_early(fd);
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
    for (int fd = 0; slots != nullptr && fd <= highest_stream(); ++fd) {
        if (Stream* stream = stream_of(fd)) {
            report(*stream);
            counted(*stream) = {};
        }
    }
}

}  // namespace sonde::stretch
