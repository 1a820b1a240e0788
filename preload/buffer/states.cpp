// SPDX-License-Identifier: Apache-2.0
// The ways from one state of a file to another.
#include "buffer/states.hpp"

#include "buffer/ahead.hpp"
#include "buffer/flushing.hpp"
#include "buffer/outside.hpp"
#include "buffer/pages.hpp"
#include "buffer/state.hpp"

#include <fcntl.h>
#include <sys/stat.h>

namespace sonde::buffer {

namespace {

void sync_offsets(File& file) noexcept {
    for (Description* one = file.ends.descriptions; one != nullptr; one = one->next) {
        raw::call(SYS_lseek, one->fd, one->offset, SEEK_SET);
    }
}

}  // namespace

void close_gate(File& file) noexcept {
    while (file.turns.gate) {
        wait_for_change(file);
    }
    file.turns.gate = true;
    while (file.turns.running > 0 || file.turns.in_flight > 0) {
        wait_for_change(file);
    }
}

void open_gate(File& file) noexcept {
    file.turns.gate = false;
    file.changed.tell();
}

void fall_asleep(File& file) noexcept {
    close_gate(file);
    if (file.mode.load(std::memory_order_relaxed) == Mode::Active) {
        flush_file(file);
        drop_all(file);
        sync_offsets(file);
        file.mode.store(Mode::Asleep, std::memory_order_seq_cst);
    }
    open_gate(file);
}

void sleep_for(File& file, std::int32_t calls) noexcept {
    fall_asleep(file);
    if (file.mode.load(std::memory_order_relaxed) == Mode::Asleep) {
        file.dormant = true;
        file.dormant_left.store(calls, std::memory_order_relaxed);
    }
}

namespace {

/// Waits a little for calls that are on their way to the kernel. One may take long, and one may be our own, which a
/// handler of the program has interrupted or left for good with longjmp.
bool all_have_arrived(File& file) noexcept {
    constexpr int most_tries = 200;
    int left = on_the_way(file);
    for (int tries = 0; left > 0 && tries < most_tries; ++tries) {
        if (own_place != nullptr && own_place->file.load(std::memory_order_relaxed) == &file) {
            return false;
        }
        file.changed.wait(file.lock, 50'000);
        left = on_the_way(file);
    }
    return left == 0;
}

/// Asleep for some calls, and for more each time.
void doze(File& file) noexcept {
    file.payoff.dormant_calls = longer_sleep(file);
    file.dormant = true;
    file.dormant_left.store(static_cast<std::int32_t>(file.payoff.dormant_calls), std::memory_order_relaxed);
}

}  // namespace

void wake_up(File& file) noexcept {
    file.dormant = false;
    if (file.mode.load(std::memory_order_relaxed) != Mode::Asleep || file.turns.around > 0) {
        return;
    }
    while (file.turns.gate) {
        wait_for_change(file);
    }
    if (file.mode.load(std::memory_order_relaxed) != Mode::Asleep) {
        return;  // another thread was quicker
    }
    if (file.appended.grew) {
        heed_growth(file);
        return;
    }
    file.turns.gate = true;
    file.mode.store(Mode::Active, std::memory_order_seq_cst);
    if (!all_have_arrived(file)) {
        file.mode.store(Mode::Asleep, std::memory_order_seq_cst);
        doze(file);
        open_gate(file);
        return;
    }
    for (Description* one = file.ends.descriptions; one != nullptr; one = one->next) {
        const long offset = raw::call(SYS_lseek, one->fd, 0, SEEK_CUR);
        one->offset = offset >= 0 ? offset : one->offset;
    }
    struct stat got {};
    if (file.ends.descriptions != nullptr && raw::call(SYS_fstat, file.ends.descriptions->fd, raw::number(&got)) == 0) {
        file.size = file.appended.landed = got.st_size;
    }
    open_gate(file);
}

void through_for_good(File& file, const char* reason) noexcept {
    if (file.mode.load(std::memory_order_relaxed) == Mode::Active) {
        fall_asleep(file);
    }
    if (file.mode.load(std::memory_order_relaxed) == Mode::Asleep) {
        file.mode.store(Mode::Through, std::memory_order_seq_cst);
        file.why_through = reason;
    }
}

void heed_growth(File& file) noexcept {
    if (file.appended.grew && file.mode.load(std::memory_order_relaxed) != Mode::Through) {
        through_for_good(file, why_grown);
    }
}

void note_landed(File& file, std::uint64_t bytes, std::int64_t size) noexcept {
    file.appended.landed += static_cast<std::int64_t>(bytes);
    if (size != file.appended.landed) {
        file.appended.grew = true;
        file.appended.landed = size;
    }
}

}  // namespace sonde::buffer
