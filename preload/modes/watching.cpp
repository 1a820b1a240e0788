// SPDX-License-Identifier: Apache-2.0
// Chooses the settings of a file from its first calls, and stores them for its next opening.
#include "modes/watching.hpp"

#include "cache/profitability.hpp"
#include "model/state.hpp"
#include "modes/modes.hpp"
#include "system/hash.hpp"

#include <iterator>

namespace sonde::buffer {

static_assert(max_pages_chosen <= std::size(CachedPages{}.inline_hash_buckets),
              "make_buckets() makes as many at least");

namespace {

/// What was chosen for files by their names: one that is opened again, or made anew, need not be watched again. (Inodes
/// would not do: the next file may have that of one which is gone.) A place is overwritten by whoever comes later.
struct RememberedChoice {
    std::uint64_t name = 0;
    BufferChoice choice;
};
constinit RememberedChoice remembered_choices[256];
constinit system::Lock remembered_choices_lock;

RememberedChoice& find_remembered_slot(std::uint64_t name) noexcept {
    return remembered_choices[(name >> 32U) % std::size(remembered_choices)];
}

void apply_choice(File& file, const BufferChoice& choice) noexcept {
    file.choice = choice;
    if (choice.is_profitable) {
        file.is_watched = false;
        file.pages.page_size = choice.page_size;
        file.pages.max_pages = choice.pages;  // there are buckets for the most that can be chosen
        file.pages.prefetch = choice.prefetch;
    }
}

}  // namespace

void begin_watch(File& file) noexcept {
    file.is_watched = true;
    file.pages.page_size = min_page_bytes;
    file.pages.max_pages = max_pages_chosen;
    const std::uint64_t name = system::compute_hash(file.path);
    system::LockGuard lock_guard(remembered_choices_lock);
    const RememberedChoice& entry = find_remembered_slot(name);
    if (entry.name == name && entry.choice.is_profitable) {
        apply_choice(file, entry.choice);
    }
}

void end_watch(File& file) noexcept {
    if (file.mode.load(std::memory_order_relaxed) != Mode::Suspended) {
        return;
    }
    const BufferChoice choice = choose_settings(file.watch, file.preferred_io_bytes);
    const bool counts_only = state.settings->stage == settings::Stage::Count;
    if (counts_only) {
        file.choice = choice;
    } else {
        apply_choice(file, choice);
    }
    file.watch = {};
    if (choice.is_profitable && !counts_only) {
        {
            const std::uint64_t name = system::compute_hash(file.path);
            system::LockGuard lock_guard(remembered_choices_lock);
            find_remembered_slot(name) = {name, choice};
        }
        file.profitability.suspension_calls = 0;
        resume_buffering(file);
    } else {
        file.profitability.suspension_calls = compute_next_suspension_calls(file);
        suspend_for(file, static_cast<std::int32_t>(file.profitability.suspension_calls));
    }
}

void reset_watching_after_fork() noexcept {
    remembered_choices_lock.reset();
}

}  // namespace sonde::buffer
