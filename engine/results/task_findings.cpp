// SPDX-License-Identifier: Apache-2.0
#include "results/task_findings.hpp"

#include <algorithm>
#include <map>

namespace sonde::results {
namespace {

struct NodeSpeed {
    double bytes = 0, operations = 0, busy_s = 0, fastest = 0;
    int tasks = 0;
};

/// The node whose tasks all have less than half the speed of tasks on other nodes; null = none. A node with one task
/// cannot be distinguished from a slow task.
const std::pair<const int, NodeSpeed>* find_slow_node(const std::map<int, NodeSpeed>& nodes, double& others) {
    const std::pair<const int, NodeSpeed>* slowest = nullptr;
    const auto rate = [](const NodeSpeed& speed) { return speed.busy_s > 0 ? speed.bytes / speed.busy_s : 0; };
    for (const auto& node : nodes) {
        if (node.second.tasks > 1 && (slowest == nullptr || rate(node.second) < rate(slowest->second))) {
            slowest = &node;
        }
    }
    NodeSpeed remainder;
    for (const auto& node : nodes) {
        remainder.bytes += &node != slowest ? node.second.bytes : 0;
        remainder.busy_s += &node != slowest ? node.second.busy_s : 0;
    }
    others = rate(remainder);
    return slowest != nullptr && others > 0 && slowest->second.fastest < others / 2 ? slowest : nullptr;
}

/// Returns true when a slow node was found; then its tasks are not reported.
bool add_node_findings(FindingList& findings, const Totals& totals, const PhaseFacts& facts, double seconds) {
    std::map<int, NodeSpeed> nodes;
    const bool moved = totals.bytes[0] + totals.bytes[1] > 0;  // otherwise the speed counts operations on names
    for (const TaskRow& row : totals.rows) {
        NodeSpeed& node = nodes[row.node];
        const double busy_s = static_cast<double>(row.end_ns - row.start_ns) / 1e9;
        const auto done = static_cast<double>(moved ? row.bytes : row.operations);
        node.bytes += done;
        node.busy_s += busy_s;
        node.fastest = std::max(node.fastest, busy_s > 0 ? done / busy_s : 0);
        ++node.tasks;
    }
    double others = 0;
    const auto* slow = nodes.size() > 1 && seconds > 0.1 ? find_slow_node(nodes, others) : nullptr;
    if (slow == nullptr) {
        return false;
    }
    const double ratio = others * slow->second.busy_s / std::max(slow->second.bytes, 1.0);
    findings.add("slow_node", "warning",
                 "all " + std::to_string(slow->second.tasks) + " tasks on " + facts.find_node_name(slow->first) +
                     format_number(" were slower, together %.1f times, than those of the other nodes", ratio) +
                     ": the total rate shows that node",
                 "look at its network, its mount and what else runs there; leave it out and compare",
                 {{"node", slow->first}, {"times_slower", ratio}, {"tasks", slow->second.tasks}});
    return true;
}

/// Cores that other processes may use without taking one from a task: those that no task needs, but at most a tenth of
/// the node, because caches and memory are shared. A quarter of a core is always there.
double compute_harmless_cores(const PhaseCircumstances& circumstances) {
    const double free_cores = circumstances.cpus - circumstances.tasks_per_node;
    return std::max(0.25, std::min(free_cores, 0.1 * circumstances.cpus));
}

}  // namespace

void find_slow_tasks(FindingList& findings, const Totals& totals, const PhaseCircumstances& circumstances,
                     const PhaseFacts& facts) {
    std::int64_t latest_start = 0;
    std::int64_t longest = 0;
    double sum = 0;
    double cpu = 0;
    const TaskRow* slowest = nullptr;
    for (const TaskRow& row : totals.rows) {
        latest_start = std::max(latest_start, row.start_ns);
        sum += static_cast<double>(row.end_ns - row.start_ns);
        cpu += static_cast<double>(row.user_ns + row.system_ns);
        if (row.end_ns - row.start_ns > longest) {
            longest = row.end_ns - row.start_ns;
            slowest = &row;
        }
    }
    const double mean = totals.rows.empty() ? 0 : sum / static_cast<double>(totals.rows.size());
    const double seconds = compute_elapsed(totals);
    const bool has_slow_node = add_node_findings(findings, totals, facts, seconds);
    if (!has_slow_node && slowest != nullptr && totals.rows.size() > 1 && seconds > 0.1 &&
        static_cast<double>(longest) > 1.5 * mean) {
        findings.add(
            "imbalance", "warning",
            "task " + std::to_string(slowest->task) + " on " + facts.find_node_name(slowest->node) +
                format_number(" took %.2f times the mean of all tasks", static_cast<double>(longest) / mean) +
                ": the total rate shows the slowest",
            "compare the steady rate, and look at the table of tasks",
            {{"task", slowest->task}, {"node", slowest->node}, {"max_over_mean", static_cast<double>(longest) / mean}});
    }
    if (seconds > 0.1 && static_cast<double>(latest_start) / 1e9 > 0.05 * seconds) {
        findings.add(
            "late_start", "info",
            format_number("the last task began %.3f s after the first", static_cast<double>(latest_start) / 1e9),
            "more tasks than cores? make the phase longer, or use fewer tasks",
            {{"latest_start_s", static_cast<double>(latest_start) / 1e9},
             {"cpus", circumstances.cpus},
             {"tasks_per_node", circumstances.tasks_per_node}});
    }
    const double cores_used = seconds > 0 ? cpu / 1e9 / seconds : 0;
    const double cores_there =
        std::min<double>(circumstances.cpus * circumstances.nodes, static_cast<double>(totals.rows.size()));
    if (seconds > 0.1 && cores_used > 0.9 * cores_there && circumstances.stores_data) {
        findings.add(
            "cpu_bound", "info",
            format_number("the tasks used %.0f %% of the cores they could use: the CPU, not the storage, set the rate",
                          100 * cores_used / cores_there),
            "use more nodes or tasks to find the storage's limit",
            {{"cores_used", cores_used}, {"cores", cores_there}});
    }
    if (circumstances.other_cores > compute_harmless_cores(circumstances) && seconds > 0.5) {
        findings.add("noisy_node", "warning",
                     format_number("other processes used %.1f of the ", circumstances.other_cores) +
                         std::to_string(circumstances.cpus) + " cores of this node during the phase",
                     "repeat on a quiet node",
                     {{"other_cores", circumstances.other_cores},
                      {"cpus", circumstances.cpus},
                      {"tasks_per_node", circumstances.tasks_per_node}});
    }
}

}  // namespace sonde::results
