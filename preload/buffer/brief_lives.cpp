// SPDX-License-Identifier: Apache-2.0
#include "buffer/brief_lives.hpp"

#include "buffer/state.hpp"
#include "system/hash.hpp"

#include <algorithm>
#include <iterator>

namespace sonde::buffer {

namespace {

constexpr std::uint32_t lives_in_vain = 4;  ///< in a row, before the next ones are left alone
constexpr std::uint32_t first_rest = 64;    ///< openings without a look; twice as many each time
constexpr std::uint32_t longest_rest = 1U << 16U;
/// What a file costs that is known and has a page or two, from its opening to its end, several times over: on storage
/// that is not as fast as memory one call that was saved is worth more.
constexpr std::uint64_t least_gain_ns = 20'000;

/// A place is overwritten by whoever comes later.
struct NameOfBrief {
    std::uint64_t name = 0;
    settings::Rule* rule = nullptr;
    std::uint32_t vain = 0;  ///< lives in a row
    std::uint32_t rest = 0;  ///< openings of the last one
    std::uint32_t left = 0;  ///< openings until the next look
};
constinit NameOfBrief names_of_brief[256];
constinit system::Lock brief_lock;

NameOfBrief& place_of_brief(std::uint64_t name) noexcept {
    return names_of_brief[(name >> 32U) % std::size(names_of_brief)];
}

/// Whether such files are wanted for nothing but saved calls, and nobody reads what became of each.
bool only_calls_count(const settings::Rule& rule) noexcept {
    return !rule.lazy_close && !rule.automatic && !rule.direct && !rule.ignore_flush && !rule.verbose &&
           state.lines_folder == nullptr;
}

/// Calls that needed none below, each at the price of one of those that were made.
std::uint64_t gained_ns(const Direction& one) noexcept {
    return one.below > 0 ? one.hits * (one.below_ns / one.below) : 0;
}

}  // namespace

settings::Rule* left_alone_by_name(const char* path) noexcept {
    const std::uint64_t name = system::hash_of(path);
    system::Hold hold(brief_lock);
    NameOfBrief& place = place_of_brief(name);
    if (place.name != name || place.left == 0) {
        return nullptr;
    }
    --place.left;
    return place.rule;
}

void note_name(File& file, const char* path) noexcept {
    file.name = only_calls_count(*file.rule) ? system::hash_of(path) : 0;
}

void note_life(const File& file) noexcept {
    if (file.name == 0 || file.why_through != nullptr || file.shared) {
        return;
    }
    const bool vain = gained_ns(file.statistics.read) + gained_ns(file.statistics.write) < least_gain_ns;
    system::Hold hold(brief_lock);
    NameOfBrief& place = place_of_brief(file.name);
    if (place.name != file.name) {
        place = {.name = file.name, .rule = file.rule};
    }
    if (!vain) {
        place.vain = place.rest = 0;
    } else if (++place.vain >= lives_in_vain) {
        place.vain = lives_in_vain - 1;  // after the rest one more is enough
        place.left = place.rest = place.rest == 0 ? first_rest : std::min(place.rest * 2, longest_rest);
    }
}

void brief_lives_after_fork() noexcept {
    brief_lock.reset();
}

}  // namespace sonde::buffer
