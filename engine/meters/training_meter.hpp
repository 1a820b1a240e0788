// SPDX-License-Identifier: Apache-2.0
// Measurements of the emulated accelerator of a stream with op train.
#pragma once

#include <cstdint>

namespace sonde::meters {

/// Sums over the epochs of a phase, ns. The first batch of each epoch is not rated.
struct TrainingMeter {
    std::uint64_t batches = 0, samples = 0;
    std::uint64_t rated_samples = 0;   ///< without those of first batches
    std::uint64_t computation_ns = 0;  ///< of rated batches
    std::uint64_t steps_ns = 0;        ///< from the end of the first computation to the end of the last
    std::uint64_t first_batch_ns = 0;  ///< until the first batch of the phase was ready
};

}  // namespace sonde::meters
