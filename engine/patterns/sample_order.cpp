// SPDX-License-Identifier: Apache-2.0
#include "patterns/sample_order.hpp"

namespace sonde::patterns {
namespace {

std::uint64_t count_units(const TrainingSet& set, plan::Shuffle shuffle) {
    return set.tasks * set.files * (shuffle == plan::Shuffle::files ? 1 : set.samples);
}

}  // namespace

SampleOrder::SampleOrder(const TrainingSet& set, plan::Shuffle shuffle, std::uint64_t seed, std::uint64_t epoch)
    : set_(set), shuffle_(shuffle), permute_(count_units(set, shuffle), mix64(seed) ^ mix64(epoch + 0x65706f6368ULL)) {
}

SampleLocation SampleOrder::locate(std::uint64_t task, std::uint64_t i) const noexcept {
    const bool whole_files = shuffle_ == plan::Shuffle::files;
    const std::uint64_t turn = (whole_files ? i / set_.samples : i) * set_.tasks + task;
    const std::uint64_t unit = shuffle_ == plan::Shuffle::none ? task * set_.per_task() + i : permute_(turn);
    const std::uint64_t number = whole_files ? unit * set_.samples + i % set_.samples : unit;
    const std::uint64_t in_task = number % set_.per_task();
    return {static_cast<int>(number / set_.per_task()), in_task / set_.samples, in_task % set_.samples};
}

}  // namespace sonde::patterns
