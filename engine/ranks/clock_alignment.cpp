// SPDX-License-Identifier: Apache-2.0
#include "ranks/clock_alignment.hpp"

#include <algorithm>

namespace sonde::ranks {
namespace {

struct Bounds {
    std::int64_t lowest, highest;
    std::int64_t width() const { return highest - lowest; }
};

Bounds bounds_of(const Exchange& exchange) {
    return {exchange.answered - exchange.returned, exchange.received - exchange.sent};
}

ClockOffset middle(const Bounds& bounds) {
    // Rounded up, so that the stated interval still covers both ends.
    return {bounds.lowest + bounds.width() / 2, bounds.width() - bounds.width() / 2};
}

}  // namespace

ClockOffset offset_from(std::span<const Exchange> exchanges) {
    Bounds left = bounds_of(exchanges.front());
    Bounds shortest = left;
    for (const Exchange& exchange : exchanges) {
        const Bounds bounds = bounds_of(exchange);
        left = {std::max(left.lowest, bounds.lowest), std::min(left.highest, bounds.highest)};
        if (bounds.width() < shortest.width()) {
            shortest = bounds;
        }
    }
    return middle(left.width() >= 0 ? left : shortest);
}

ClockOffset chained(const ClockOffset& to_second, const ClockOffset& second_to_third) {
    return {to_second.offset_ns + second_to_third.offset_ns, to_second.error_ns + second_to_third.error_ns};
}

}  // namespace sonde::ranks
