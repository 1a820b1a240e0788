// SPDX-License-Identifier: Apache-2.0
// From the settings of a test to a plan of Sonde. The words of the plan are those of schema/plan; what IOR and Sonde do
// differently is in docs/reference/ior.
#pragma once

#include "dialects/ior/settings.hpp"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace sonde::dialects::ior {

/// The processes of the run.
struct TaskPlacement {
    int tasks = 1;  ///< that there are
    int nodes = 1;
    int tasks_on_node0 = 1;
    bool fills_nodes_in_order = true;  ///< task 1 is on the node of task 0: tasks fill one node after the other
    int active_tasks(const IorSettings& settings) const {
        return settings.tasks < 0 ? tasks : std::min(settings.tasks, tasks);
    }
    int tasks_per_node(const IorSettings& settings) const {
        return settings.tasks_on_node0 > 0 ? static_cast<int>(settings.tasks_on_node0) : tasks_on_node0;
    }
};

/// A phase of the plan, as IOR sees it.
struct IorStep {
    enum class StepKind { prefill, write, check_write, read, remove };
    std::string id;
    StepKind kind = StepKind::write;
    int repetition = 0;
};

// NOLINTNEXTLINE(bugprone-exception-escape): the JSON library's move is said to throw, and does not.
struct Translation {
    nlohmann::ordered_json plan;
    std::vector<IorStep> steps;  ///< by phase
};

/// The plan of test number `number`. `now` stands for the signature of -G and the seed of -z where they are not given;
/// `status` is what a status file says about transfers to read.
Translation translate(const IorSettings& settings, const TaskPlacement& placement, int number, std::int64_t now,
                      std::optional<std::int64_t> status);

/// IOR's -Z: whose data each task reads in a repetition. Draws from the C library's generator as IOR does.
std::vector<int> shuffle_owners(const IorSettings& settings, const TaskPlacement& placement, int repetition);

}  // namespace sonde::dialects::ior
