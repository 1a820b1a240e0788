// SPDX-License-Identifier: Apache-2.0
#include "files/segments.hpp"

#include "patterns/geometry.hpp"
#include "plan/check_data.hpp"
#include "plan/plan_error.hpp"

namespace sonde::files {
namespace {

std::uint64_t require_fitting_segments(const plan::Phase& phase, std::uint64_t segments, std::uint64_t tasks) {
    if (!plan::fits_in_file(phase.data, segments, tasks)) {
        throw plan::PlanError("plan: phase \"" + phase.id +
                              "\" reaches beyond the largest file (4 EiB): check volume, stride, gap and offset");
    }
    return segments;
}

}  // namespace

std::uint64_t segments_of(const plan::Phase& phase, const TaskMap& tasks, std::uint64_t node_memory) {
    const plan::Access& access = phase.data.access;
    const auto all = static_cast<std::uint64_t>(tasks.tasks());
    if (access.segments) {
        return require_fitting_segments(phase, *access.segments, all);
    }
    const auto on_node = static_cast<std::uint64_t>(tasks.tasks_on(0));
    std::uint64_t volume = patterns::volume_of_task(access.volume.value_or(plan::Amount{}), all, on_node, node_memory);
    if (phase.data.files.mapping == plan::Mapping::many) {
        const auto count = static_cast<std::uint64_t>(phase.files.empty() ? phase.data.files.count
                                                                          : static_cast<int>(phase.files.size()));
        volume = (volume + count - 1) / count;
    }
    return require_fitting_segments(phase, patterns::count_segments(volume, access.block), all);
}

}  // namespace sonde::files
