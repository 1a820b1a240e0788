// SPDX-License-Identifier: Apache-2.0
// Chooses the settings of a file from its first calls, and stores them for its next opening.
#include "modes/watching.hpp"

#include "cache/profitability.hpp"
#include "model/state.hpp"
#include "modes/modes.hpp"
#include "system/hash.hpp"

#include <iterator>

namespace sonde::buffer {

static_assert(many_pages <= std::size(CachedPages{}.few_buckets), "make_buckets() makes as many at least");

namespace {

/// What was chosen for files by their names: one that is opened again, or made anew, need not be watched again. (Inodes
/// would not do: the next file may have that of one which is gone.) A place is overwritten by whoever comes later.
struct Remembered {
    std::uint64_t name = 0;
    Choice choice;
};
constinit Remembered remembered[256];
constinit system::Lock remembering;

Remembered& find_remembered_slot(std::uint64_t name) noexcept {
    return remembered[(name >> 32U) % std::size(remembered)];
}

void apply_choice(File& file, const Choice& choice) noexcept {
    file.choice = choice;
    if (choice.pays) {
        file.watching = false;
        file.pages.page_size = choice.page_size;
        file.pages.limit = choice.pages;  // there are buckets for the most that can be chosen
        file.pages.prefetch = choice.ahead;
    }
}

}  // namespace

void begin_watch(File& file) noexcept {
    file.watching = true;
    file.pages.page_size = smallest_page;
    file.pages.limit = many_pages;
    const std::uint64_t name = system::hash_of(file.path);
    system::Hold lock_guard(remembering);
    const Remembered& entry = find_remembered_slot(name);
    if (entry.name == name && entry.choice.pays) {
        apply_choice(file, entry.choice);
    }
}

void end_watch(File& file) noexcept {
    if (file.mode.load(std::memory_order_relaxed) != Mode::Suspended) {
        return;
    }
    const Choice choice = choose_settings(file.watch, file.block);
    const bool counts_only = state.settings->stage == settings::Stage::Count;
    if (counts_only) {
        file.choice = choice;
    } else {
        apply_choice(file, choice);
    }
    file.watch = {};
    if (choice.pays && !counts_only) {
        {
            const std::uint64_t name = system::hash_of(file.path);
            system::Hold lock_guard(remembering);
            find_remembered_slot(name) = {name, choice};
        }
        file.payoff.suspension_calls = 0;
        resume_buffering(file);
    } else {
        file.payoff.suspension_calls = compute_next_suspension_calls(file);
        suspend_for(file, static_cast<std::int32_t>(file.payoff.suspension_calls));
    }
}

void reset_watching_after_fork() noexcept {
    remembering.reset();
}

}  // namespace sonde::buffer
