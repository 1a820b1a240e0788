// SPDX-License-Identifier: Apache-2.0
// Which storage target holds a byte of a file, as arithmetic: the layout of one file, flat, without names. Made when a
// file is opened; asked for operations, so without a division.
#pragma once

#include "plan/uint128.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

namespace sonde::patterns {

/// The bytes [start, end) of a file, `stripe` of them in turn on each of `targets`. The turn is counted from `shift`
/// bytes before the beginning of the file.
struct StripePart {
    std::uint64_t start = 0;
    std::uint64_t end = ~0ULL;              ///< one past the last byte
    std::uint64_t stripe = 0;               ///< bytes; 0 = all of it lies on the one target
    std::uint64_t shift = 0;                ///< bytes, less than a turn
    std::vector<std::string> targets = {};  ///< by stripe, a name as often as it holds stripes; empty: not known
    bool is_pending = false;                ///< its targets are chosen when somebody writes there
};
/// The pieces of one file, in any order, none over another. Empty: not known.
using FileStripes = std::vector<StripePart>;

/// Division by a number that stays the same, exact for all 64 bits: a shift where it is a power of two, as stripes are,
/// else a multiplication and at most one correction.
class Reciprocal {
 public:
    explicit Reciprocal(std::uint64_t divisor = 1) noexcept
        : divisor_(divisor), factor_(std::has_single_bit(divisor) ? 0 : ~0ULL / divisor) {}
    std::uint64_t quotient(std::uint64_t value) const noexcept {
        if (factor_ == 0) {
            return value >> static_cast<unsigned>(std::countr_zero(divisor_));
        }
        const auto low = static_cast<std::uint64_t>((static_cast<uint128>(value) * factor_) >> 64U);
        return low + (value - low * divisor_ >= divisor_ ? 1 : 0);
    }
    std::uint64_t divisor() const noexcept { return divisor_; }

 private:
    std::uint64_t divisor_, factor_;
};

class StripeMap {
 public:
    static constexpr std::uint32_t no_target = std::numeric_limits<std::uint32_t>::max();

    /// Bytes [from, to) of the file lie on `target`, a number that the maker of the map gave; `nobody`: not known.
    struct StripeExtent {
        std::uint64_t from = 0, to = 0;
        std::uint32_t target = no_target;
        bool is_pending = false;  ///< not known yet: a target is chosen when somebody writes there
    };

    StripeMap() = default;
    /// `number_of(name)` gives the number of a target.
    template <class Number>
    StripeMap(const FileStripes& stripes, Number number_of) {
        for (const StripePart& part : stripes) {
            const auto first = static_cast<std::uint32_t>(targets_.size());
            // Several complete copies: the copy that served an operation is unknown.
            const bool is_known = !part.targets.empty() && (part.stripe > 0 || part.targets.size() == 1);
            for (std::size_t i = 0; is_known && i < part.targets.size(); ++i) {
                targets_.push_back(number_of(part.targets[i]));
            }
            const auto count = static_cast<std::uint32_t>(targets_.size()) - first;
            const bool single_target =
                is_known && std::all_of(targets_.begin() + first, targets_.end(),
                                        [&](std::uint32_t target) { return target == targets_[first]; });
            flat_parts_.push_back({.start = part.start,
                                   .end = part.end,
                                   .shift = part.shift,
                                   .stripe_reciprocal = Reciprocal(std::max<std::uint64_t>(part.stripe, 1)),
                                   .count_reciprocal = Reciprocal(std::max<std::uint32_t>(count, 1)),
                                   .first = first,
                                   .stripes = count,
                                   .single_target = single_target,
                                   .pending = part.is_pending});
        }
        // A file on a striped volume has a part for each of its extents.
        std::sort(flat_parts_.begin(), flat_parts_.end(),
                  [](const FlatPart& a, const FlatPart& b) { return a.start < b.start; });
    }

    /// The stretch around the byte at `offset` that lies on one target.
    StripeExtent find(std::uint64_t offset) const noexcept {
        if (flat_parts_.size() == 1 && offset >= flat_parts_[0].start && offset < flat_parts_[0].end) {
            return extent_in_part(flat_parts_[0], offset);
        }
        const auto next = std::upper_bound(flat_parts_.begin(), flat_parts_.end(), offset,
                                           [](std::uint64_t byte, const FlatPart& part) { return byte < part.start; });
        if (next != flat_parts_.begin() && offset < std::prev(next)->end) {
            return extent_in_part(*std::prev(next), offset);
        }
        // Between parts, or behind the last: up to the next one.
        return {offset, next == flat_parts_.end() ? ~0ULL : next->start, no_target, false};
    }

 private:
    struct FlatPart {
        std::uint64_t start, end, shift;
        Reciprocal stripe_reciprocal, count_reciprocal;
        std::uint32_t first, stripes;  ///< in targets_
        bool single_target, pending;
    };
    StripeExtent extent_in_part(const FlatPart& part, std::uint64_t offset) const noexcept {
        if (part.stripes == 0) {
            return {part.start, part.end, no_target, part.pending};
        }
        if (part.single_target) {
            return {part.start, part.end, targets_[part.first], false};
        }
        const std::uint64_t position = offset + part.shift;
        const std::uint64_t number = part.stripe_reciprocal.quotient(position);
        const std::uint64_t turn = number - part.count_reciprocal.quotient(number) * part.stripes;
        // Counted from the offset, so that nothing is below zero or beyond 64 bits.
        const std::uint64_t before = position - number * part.stripe_reciprocal.divisor();
        const std::uint64_t behind = part.stripe_reciprocal.divisor() - before;
        return {offset - part.start < before ? part.start : offset - before,
                part.end - offset < behind ? part.end : offset + behind, targets_[part.first + turn], false};
    }

    std::vector<FlatPart> flat_parts_;
    std::vector<std::uint32_t> targets_;
};

}  // namespace sonde::patterns
