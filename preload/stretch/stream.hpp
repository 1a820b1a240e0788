// SPDX-License-Identifier: Apache-2.0
// What is known of a descriptor whose small calls may be gathered between two system calls, from open() to close().
#pragma once

#include "buffer/statistics.hpp"
#include "settings/params.hpp"
#include "stretch/trap.hpp"

#include <sys/types.h>
#include <atomic>
#include <cstdint>

namespace sonde::buffer {
struct Seen;
}

namespace sonde::stretch {

/// For files whose report somebody will read.
struct Told {
    Told* next_free = nullptr;
    std::uint64_t opened_ns = 0;
    std::uint64_t gathered = 0;  ///< calls that became part of a larger one
    buffer::Statistics statistics;
    char path[1024] = {};
};

/// Small, because a program may have many files open of which none is worth more than a look.
struct alignas(64) Stream {
    /// Small calls in a row before a stretch is tried for the first time.
    static constexpr std::uint32_t first_needed = 16;

    // What each call looks at lies in one line of the processor's cache.
    Stream* next_free = nullptr;
    settings::Rule* rule = nullptr;
    Told* told = nullptr;
    std::uint64_t call_ns = 0;  ///< of its small calls lately
    std::int64_t next_at = -1;  ///< where the next call at a place given by the program would follow the last
    std::uint32_t in_a_row = 0;
    std::uint32_t needed = first_needed;
    std::uint32_t share = 0;   ///< share_count() at open: while it is the same nobody else has the offset
    int error = 0;             ///< errno of a delayed write, for the next call that can report it
    bool may = false;          ///< its kind of descriptor allows it
    bool is_known = false;     ///< rule, device and inode are; they are looked up when they are needed
    bool by_mpi = false;       ///< opened by MPI-IO
    std::uint8_t untimed = 0;  ///< third calls in a row since one was timed
    // The rest is for those that are gathered.
    std::uint64_t bytes_since_look = 0;  ///< written since the free space was looked at
    dev_t device = 0;
    ino_t inode = 0;
    const char* stopped = nullptr;  ///< why nothing is gathered here, for the report
    char given[120] = {};           ///< the name it was opened with, while it is not known
};

/// Nothing is gathered here and nobody counts: its calls need not even be looked at.
inline bool is_left(const Stream& stream) noexcept {
    return !stream.may && stream.told == nullptr && stream.error == 0;
}

/// Whether the first of some calls in a row is timed: where stretches have been tried, and not in vain again and again.
inline bool times_the_first(const Stream& stream) noexcept {
    return stream.needed != Stream::first_needed && stream.needed <= 4 * Stream::first_needed;
}

/// Where its calls are counted; what nobody will read goes to a place of the thread.
buffer::Statistics& counted(Stream& stream) noexcept;

inline constexpr int most_descriptors = 1 << 20;
/// What is known of a descriptor: 0 nothing; a Stream; or, with its lowest bit set, that it is a file of which only
/// some first calls were seen (bits 1 to 7 count them, above them is share_count() at open). Most files of most
/// programs never have more.
using Slot = std::uintptr_t;
inline constexpr Slot early_mark = 1, one_call = 2, calls_mask = 0xFE;
inline constexpr unsigned share_shift = 8;
inline constexpr Slot few_calls = 3 * one_call;
inline constexpr std::size_t most_of_an_early_call = 8U << 10U;  ///< larger ones may be worth a look at once
/// Empty until the first file is taken on.
extern std::atomic<Slot>* slots;

inline Slot slot_of(int fd) noexcept {
    return slots != nullptr && static_cast<unsigned>(fd) < most_descriptors ? slots[fd].load(std::memory_order_acquire)
                                                                            : 0;
}
inline bool is_early(Slot slot) noexcept {
    return (slot & early_mark) != 0;
}
inline Stream* stream_of(int fd) noexcept {
    const Slot slot = slot_of(fd);
    return is_early(slot) ? nullptr : reinterpret_cast<Stream*>(slot);
}
/// Counts a call in an early slot, unless it has changed meanwhile.
inline bool count_early(std::atomic<Slot>& slot, Slot seen) noexcept {
#if defined(__x86_64__)
    if (single_threaded != nullptr && *single_threaded != 0) [[likely]] {
        // Only handlers of the program can come in between, and not into one instruction: nobody need be locked out.
        bool done = false;
        asm volatile("cmpxchgq %3, %1" : "+a"(seen), "+m"(slot), "=@ccz"(done) : "r"(seen + one_call) : "memory");
        return done;
    }
#endif
    return slot.compare_exchange_strong(seen, seen + one_call, std::memory_order_relaxed);
}
/// A call on an early one: true when that is all that need be known of it. `fits`: small, and at the offset.
inline bool is_one_of_few(int fd, Slot slot, bool fits) noexcept {
    return fits && (slot & calls_mask) < few_calls && count_early(slots[fd], slot);
}
inline void forget_early(int fd) noexcept {
    slots[fd].store(0, std::memory_order_release);
}
/// Otherwise it becomes a Stream; nullptr when nothing could be gathered here now.
Stream* make_known(int fd, Slot slot) noexcept;

/// Before any file is opened. `wants_lines`: reports are wanted as JSON too.
void start_streams(settings::Settings& settings, bool wants_lines) noexcept;
/// `fd` has just been opened with `flags` as `path`: true when it is one of ours from now on. With a `reason` its calls
/// are counted, and left as they are. Files that the buffer takes are left to it.
bool take_on(int fd, int flags, const char* path, buffer::Seen& seen, const char* reason = nullptr,
             bool by_mpi = false) noexcept;
/// Looks up what is not known of it yet; false when its calls are left as they are.
bool know(Stream& stream, int fd) noexcept;
/// The reason is for the report; nothing is gathered here from now on.
void leave_alone(int fd, const char* reason) noexcept;
/// Its descriptor is about to be closed or replaced. The error of a delayed write, or 0.
int give_up(int fd) noexcept;
/// No descriptor above this was ever a stream's.
int highest_stream() noexcept;
/// Another process may have the offsets of our descriptors from now on.
void note_sharing() noexcept;
std::uint32_t share_count() noexcept;
/// A line for each file that is still open; once, at the end.
void report_streams() noexcept;

}  // namespace sonde::stretch
