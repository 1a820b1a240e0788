// SPDX-License-Identifier: Apache-2.0
// Which samples of a data set a task reads in one epoch, in which order. All files of all tasks are the data set; each
// epoch divides it among the tasks again, so that a task reads other samples than in the epoch before.
#pragma once

#include "patterns/permutation.hpp"
#include "plan/plan.hpp"

#include <cstdint>

namespace sonde::patterns {

/// A sample: the block `block` of file `file` of task `owner`.
struct SampleLocation {
    int owner = 0;
    std::uint64_t file = 0, block = 0;
    bool operator==(const SampleLocation&) const = default;
};

/// The data set: each task wrote `files` files of `samples` samples each.
struct TrainingSet {
    std::uint64_t tasks = 1, files = 1, samples = 1;
    std::uint64_t per_task() const { return files * samples; }
};

class SampleOrder {
 public:
    /// With Shuffle::samples all samples are permuted, with Shuffle::files the files, whose samples keep their order.
    SampleOrder(const TrainingSet& set, plan::Shuffle shuffle, std::uint64_t seed, std::uint64_t epoch);
    /// The i-th sample that `task` reads, i < set.per_task().
    SampleLocation locate(std::uint64_t task, std::uint64_t i) const noexcept;

 private:
    TrainingSet set_;
    plan::Shuffle shuffle_;
    Permutation permute_;
};

}  // namespace sonde::patterns
