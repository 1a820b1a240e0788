// SPDX-License-Identifier: Apache-2.0
// How the accesses move, what will be wanted next, and whether buffering pays. Unless said otherwise the lock of the
// file is held.
#pragma once

#include "buffer/file.hpp"

namespace sonde::buffer {

struct Move {
    bool local = false;  ///< part of a stream, or near what is held: whole pages pay
    bool backward = false;
    bool dense = false;       ///< part of a stream whose calls lie close together, or overlap
    bool passes = false;      ///< leaves a whole page behind, on storage where reading it again would cost little
    bool straight = false;    ///< too large to gain from a copy in between, on storage as fast as memory
    std::uint64_t reach = 0;  ///< bytes worth loading from here on, in the direction of the stream
    std::uint64_t fresh = 0;  ///< bytes of this call that the one before did not touch
    std::uint64_t run = 0;    ///< bytes of the stream so far, this call included
};
Move follow(Stream& stream, std::int64_t begin, std::int64_t end, std::uint32_t page_size) noexcept;
bool worth_a_guess(File& file, std::int64_t index) noexcept;
void plan_ahead(File& file, const Stream& stream, const Move& move, std::int64_t begin, std::int64_t end) noexcept;
void used_ahead(File& file, Page& page) noexcept;
void wasted_ahead(File& file) noexcept;
/// A call of the program went straight to storage: its `bytes` that were not there before took `ns`.
void note_call(File& file, std::uint64_t bytes, std::uint64_t ns) noexcept;
/// A transfer of ours of `bytes` took `ns`.
void note_transfer(File& file, std::uint64_t bytes, std::uint64_t ns) noexcept;
/// What a call of [begin, end) through this description is part of.
Move judge(File& file, Stream& stream, std::int64_t begin, std::int64_t end) noexcept;
/// Storage has been seen to be slower than memory.
bool is_slow(const File& file) noexcept;
/// Counts a call for the question whether buffering pays; true when the file should go to sleep.
bool count_call(File& file, bool hit) noexcept;
/// The program has locked the file, and what was read will be forgotten: true when that happens so often, or with so
/// much read in vain, that the file should go to sleep.
bool count_lock(File& file) noexcept;
/// Calls of the next sleep of a file whose last one was followed by nothing better.
std::uint32_t longer_sleep(const File& file) noexcept;

}  // namespace sonde::buffer
