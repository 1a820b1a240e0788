// SPDX-License-Identifier: Apache-2.0
// Holds memory while a phase runs, so that the page cache cannot hold the data.
#pragma once

#include "treatments/background.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace sonde::treatments {

struct HeldMemory {
    std::shared_ptr<void> held;           ///< released when the last copy goes
    std::uint64_t wanted = 0, bytes = 0;  ///< bytes asked for and really held
    bool locked = false;                  ///< cannot be swapped out
    bool stopped = false;
    std::string trouble;  ///< why there are fewer bytes than wanted, empty when there are not
};

/// Takes `fraction` of the node's memory, page by page, and never so much that less than a reserve (2 % of memory, at
/// least 256 MiB, at most a quarter) would be left to others. Polls `stop`.
HeldMemory hold_memory(double fraction, const StopAsked& stop);

/// "1.25 GiB": digits after the second are cut off.
std::string gibibytes(std::uint64_t bytes);

}  // namespace sonde::treatments
