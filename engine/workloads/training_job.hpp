// SPDX-License-Identifier: Apache-2.0
// The samples that a stream with op train reads.
#pragma once

#include "patterns/sample_order.hpp"

#include <cstdint>
#include <functional>

namespace sonde::workloads {

struct FileJob;

struct TrainingJob {
    patterns::TrainingSet training_set;
    plan::Shuffle shuffle = plan::Shuffle::samples;
    std::uint64_t seed = 0, epoch = 0;  ///< of the first pass; each pass is an epoch more
    /// File `file` of task `owner`.
    std::function<FileJob(int owner, std::uint64_t file)> make_file_job;

    patterns::SampleOrder order(std::uint64_t pass) const {
        return {training_set, shuffle, seed, (epoch << 32U) + pass};
    }
};

}  // namespace sonde::workloads
