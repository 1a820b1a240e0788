// SPDX-License-Identifier: Apache-2.0
// Options of the model that do not follow from the system.
#pragma once

#include "kernel/time.hpp"

#include <cstdint>

namespace sonde::simulate {

struct MachineOptions {
    std::uint64_t seed = 1;
    Time sample_interval = 5'000'000'000;  ///< ns between two rows of counters; 0: no rows are stored
};

}  // namespace sonde::simulate
