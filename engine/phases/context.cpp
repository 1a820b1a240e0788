// SPDX-License-Identifier: Apache-2.0
#include "phases/context.hpp"

#include "results/summary.hpp"

#include <cstddef>

namespace sonde::phases {

std::string lost_sentence(const Context& context, const std::string& when) {
    const int process = context.team.control().lost_process.load();
    const auto& nodes = context.tasks.node_of_process;
    const std::vector<std::string>& hosts = context.at_root.hosts;
    if (process < 0 || process >= static_cast<int>(nodes.size())) {
        return "a process of another node died or cannot be reached any more " + when + "; finished phases are kept";
    }
    const int node = nodes[static_cast<std::size_t>(process)];
    if (context.team.control().lost_in_silence.load() != 0) {
        return results::name_of_node(hosts, node) + " was given up " + when +
               ": nothing was heard of it for longer than SONDE_NODE_PATIENCE; it hangs or its network is gone; "
               "finished phases are kept";
    }
    const bool known = static_cast<std::size_t>(node) < hosts.size();
    return "process " + std::to_string(process) + (known ? " on " + results::name_of_node(hosts, node) : "") +
           " died " + when + "; finished phases are kept";
}

}  // namespace sonde::phases
