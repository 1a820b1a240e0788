// SPDX-License-Identifier: Apache-2.0
// Allocates memory during a phase, so that the data does not fit into the page cache.
#pragma once

#include "treatments/background.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace sonde::treatments {

struct HeldMemory {
    std::shared_ptr<void> memory;                  ///< released with the last copy
    std::uint64_t requested_bytes = 0, bytes = 0;  ///< bytes requested and allocated
    bool locked = false;                           ///< cannot be swapped out
    bool stopped = false;
    std::string problem;  ///< why fewer bytes were allocated than requested; else empty
};

/// Allocates `fraction` of the node's memory, page by page, but leaves a reserve (2 % of memory, at least 256 MiB, at
/// most a quarter) to other processes. Polls `stop`.
HeldMemory hold_memory(double fraction, const StopPredicate& stop);

/// "1.25 GiB": two digits, truncated.
std::string format_gibibytes(std::uint64_t bytes);

}  // namespace sonde::treatments
