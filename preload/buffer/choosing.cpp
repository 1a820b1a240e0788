// SPDX-License-Identifier: Apache-2.0
#include "buffer/choosing.hpp"

#include "buffer/inside.hpp"

#include <algorithm>

namespace sonde::buffer {

namespace {

// The same numbers as in lab/sonde/advise/buffers.py.
constexpr std::uint64_t small = 1U << 20U;
constexpr std::uint64_t smallest_page = 1U << 20U, largest_page = 1U << 24U;
constexpr std::uint64_t records_of_a_page = 64;
constexpr std::int64_t short_distance = 65536;
constexpr std::uint32_t few_pages = 4, many_pages = 16, pages_ahead = 2;
static_assert(many_pages <= 16, "make_buckets() makes 16 at least");

/// Calls that follow others at a distance which is short and comes often: a quarter of all calls have it.
std::uint64_t at_short_distances(const Watch& watch) noexcept {
    std::uint64_t calls = 0;
    for (unsigned i = 0; i < system::Frequent::places; ++i) {
        const std::int64_t stride = watch.strides.value(i);
        const std::uint64_t count = watch.strides.count(i);
        const bool is_short = stride != 0 && stride <= short_distance && stride >= -short_distance;
        calls += is_short && count * 4 > watch.calls() ? count : 0;
    }
    return calls;
}

}  // namespace

void Watch::add(bool writes, std::int64_t begin, std::int64_t bytes) noexcept {
    Side& side = writes ? write : read;
    if (calls() > 0) {
        side.consecutive += begin == last_end ? 1 : 0;
        switches += writes != last_writes ? 1 : 0;
        strides.add(begin - last_begin);
    }
    ++side.calls;
    side.bytes += static_cast<std::uint64_t>(bytes);
    last_begin = begin;
    last_end = begin + bytes;
    last_writes = writes;
}

Choice choose(const Watch& watch, std::uint64_t block) noexcept {
    Choice choice;
    const Watch::Side& most = watch.write.calls > watch.read.calls ? watch.write : watch.read;
    const std::uint64_t calls = watch.calls();
    const std::uint64_t follow = watch.read.consecutive + watch.write.consecutive;
    const std::uint64_t near = at_short_distances(watch);
    if (calls < calls_of_a_watch) {
        choice.why = "it has too few calls to be worth a buffer";
    } else if (most.bytes >= most.calls * small) {
        choice.why = "its calls are large already";
    } else if (std::max(follow, near) * 2 <= calls) {
        choice.why = "its calls neither follow each other nor keep a short distance";
    } else {
        choice.pays = true;
        choice.why = follow >= near ? "its small calls follow each other" : "its small calls keep a short distance";
        std::uint64_t page = smallest_page;
        while (page < largest_page && (page * most.calls < records_of_a_page * most.bytes || page < block)) {
            page *= 2;
        }
        choice.page_size = static_cast<std::uint32_t>(page);
        // Streams that take turns (several variables of one file) each need a page of their own.
        const bool one_stream = watch.switches * 8ULL < calls && most.consecutive * 4ULL > most.calls * 3ULL;
        choice.pages = one_stream ? few_pages : many_pages;
        const bool reads_on = watch.read.consecutive * 2ULL > watch.read.calls || near * 2 > calls;
        choice.ahead = watch.read.calls > 0 && reads_on ? pages_ahead : 0;
    }
    return choice;
}

namespace {

/// What was chosen for files by their names: one that is opened again, or made anew, need not be watched again. (Inodes
/// would not do: the next file may have that of one which is gone.) A place is overwritten by whoever comes later.
struct Remembered {
    std::uint64_t name = 0;
    Choice choice;
};
constinit Remembered remembered[256];
constinit system::Lock remembering;

std::uint64_t hash_of(const char* path) noexcept {
    std::uint64_t hash = 0xCBF29CE484222325ULL;
    for (; *path != 0; ++path) {
        hash = (hash ^ static_cast<unsigned char>(*path)) * 0x100000001B3ULL;
    }
    return hash;
}

Remembered& place_of(std::uint64_t name) noexcept {
    return remembered[(name >> 32U) % std::size(remembered)];
}

void take(File& file, const Choice& choice) noexcept {
    file.choice = choice;
    if (choice.pays) {
        file.watching = false;
        file.page_size = choice.page_size;
        file.page_limit = choice.pages;  // there are buckets for the most that can be chosen
        file.prefetch = choice.ahead;
    }
}

}  // namespace

void begin_watch(File& file) noexcept {
    file.watching = true;
    file.page_size = smallest_page;
    file.page_limit = many_pages;
    const std::uint64_t name = hash_of(file.path);
    system::Hold hold(remembering);
    const Remembered& place = place_of(name);
    if (place.name == name && place.choice.pays) {
        take(file, place.choice);
    }
}

void end_watch(File& file) noexcept {
    close_gate(file);  // no call may be under way while the size of pages changes
    Choice choice;
    if (file.watching && file.mode.load(std::memory_order_relaxed) == Mode::Active) {
        choice = choose(file.watch, file.block);
        take(file, choice);
        file.watch = {};
    }
    open_gate(file);
    if (choice.pays) {
        const std::uint64_t name = hash_of(file.path);
        system::Hold hold(remembering);
        place_of(name) = {name, choice};
        file.dormant_calls = 0;
    } else if (choice.why != nullptr) {
        file.dormant_calls = longer_sleep(file);
        sleep_for(file, static_cast<std::int32_t>(file.dormant_calls));
    }
}

void choosing_after_fork() noexcept {
    remembering.reset();
}

}  // namespace sonde::buffer
