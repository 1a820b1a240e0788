// SPDX-License-Identifier: Apache-2.0
#include "phases/context.hpp"

#include "results/summary.hpp"

#include <cstddef>

namespace sonde::phases {

std::string describe_lost_process(const RunContext& context, const std::string& when) {
    const int process = context.team.control().lost_process.load();
    const auto& nodes = context.tasks.node_of_process;
    const std::vector<std::string>& hosts = context.root_state.hosts;
    if (process < 0 || process >= static_cast<int>(nodes.size())) {
        return "a process of another node died or cannot be reached any more " + when + "; finished phases are kept";
    }
    const int node = nodes[static_cast<std::size_t>(process)];
    if (context.team.control().is_lost_by_timeout.load() != 0) {
        return results::find_node_name(hosts, node) + " was given up " + when +
               ": nothing was heard of it for longer than SONDE_NODE_PATIENCE; it hangs or its network is gone; "
               "finished phases are kept";
    }
    const bool is_known = static_cast<std::size_t>(node) < hosts.size();
    return "process " + std::to_string(process) + (is_known ? " on " + results::find_node_name(hosts, node) : "") +
           " died " + when + "; finished phases are kept";
}

}  // namespace sonde::phases
