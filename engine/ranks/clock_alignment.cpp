// SPDX-License-Identifier: Apache-2.0
#include "ranks/clock_alignment.hpp"

#include <algorithm>

namespace sonde::ranks {
namespace {

struct OffsetBounds {
    std::int64_t lower_bound_ns, upper_bound_ns;
    std::int64_t width() const { return upper_bound_ns - lower_bound_ns; }
};

OffsetBounds compute_bounds(const ClockExchange& exchange) {
    return {exchange.answered_ns - exchange.returned_ns, exchange.received_ns - exchange.sent_ns};
}

ClockOffset compute_middle(const OffsetBounds& bounds) {
    // Rounded up, so that the interval still includes both ends.
    return {bounds.lower_bound_ns + bounds.width() / 2, bounds.width() - bounds.width() / 2};
}

}  // namespace

ClockOffset estimate_offset(std::span<const ClockExchange> exchanges) {
    OffsetBounds intersection = compute_bounds(exchanges.front());
    OffsetBounds shortest = intersection;
    for (const ClockExchange& exchange : exchanges) {
        const OffsetBounds bounds = compute_bounds(exchange);
        intersection = {std::max(intersection.lower_bound_ns, bounds.lower_bound_ns),
                        std::min(intersection.upper_bound_ns, bounds.upper_bound_ns)};
        if (bounds.width() < shortest.width()) {
            shortest = bounds;
        }
    }
    return compute_middle(intersection.width() >= 0 ? intersection : shortest);
}

ClockOffset add_offsets(const ClockOffset& to_second, const ClockOffset& second_to_third) {
    return {to_second.offset_ns + second_to_third.offset_ns, to_second.error_ns + second_to_third.error_ns};
}

}  // namespace sonde::ranks
