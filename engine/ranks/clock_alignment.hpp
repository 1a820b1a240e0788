// SPDX-License-Identifier: Apache-2.0
// How far two clocks are apart, from messages that went to and fro. Pure arithmetic.
#pragma once

#include <cstdint>
#include <span>

namespace sonde::ranks {

/// One message and its answer; all in nanoseconds.
struct Exchange {
    std::int64_t sent = 0;      ///< here, here's clock
    std::int64_t received = 0;  ///< there, there's clock
    std::int64_t answered = 0;  ///< there, there's clock
    std::int64_t returned = 0;  ///< here, here's clock
};

struct ClockOffset {
    std::int64_t offset_ns = 0;  ///< here + offset = there
    std::int64_t error_ns = 0;   ///< the truth is at most this far from offset_ns
};

/// Nothing arrives before it was sent: each exchange confines the offset to [answered - returned, received - sent],
/// however unequal the two ways were. The answer is the middle of what all exchanges leave, its error half the width.
/// When they contradict each other (the clocks drifted meanwhile), the exchange with the shortest journey decides
/// alone. At least one exchange is needed.
ClockOffset offset_from(std::span<const Exchange> exchanges);

/// The offset from a clock to a third one by way of a second: offsets add, and so do their errors.
ClockOffset chained(const ClockOffset& to_second, const ClockOffset& second_to_third);

}  // namespace sonde::ranks
