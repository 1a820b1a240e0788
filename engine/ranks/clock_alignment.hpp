// SPDX-License-Identifier: Apache-2.0
// Offset between two clocks, computed from messages and their answers. Pure arithmetic.
#pragma once

#include <cstdint>
#include <span>

namespace sonde::ranks {

/// One message and its answer; all in nanoseconds.
struct ClockExchange {
    std::int64_t sent_ns = 0;      ///< sent by this node, on its clock
    std::int64_t received_ns = 0;  ///< on the other node, on its clock
    std::int64_t answered_ns = 0;  ///< on the other node, on its clock
    std::int64_t returned_ns = 0;  ///< sent by this node, on its clock
};

struct ClockOffset {
    std::int64_t offset_ns = 0;  ///< this clock + offset = the other clock
    std::int64_t error_ns = 0;   ///< largest possible error of offset_ns
};

/// No message arrives before it was sent, so each exchange confines the offset to [answered - returned, received -
/// sent], however unequal the two delays were. The result is the middle of the intersection of all exchanges, and its
/// error half the width. If the intersection is empty because the clocks drifted, only the exchange with the shortest
/// round trip counts. At least one exchange is required.
ClockOffset estimate_offset(std::span<const ClockExchange> exchanges);

/// The offset from a first clock to a third one through a second clock: offsets and errors add up.
ClockOffset add_offsets(const ClockOffset& to_second, const ClockOffset& second_to_third);

}  // namespace sonde::ranks
