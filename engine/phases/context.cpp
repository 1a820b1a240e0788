// SPDX-License-Identifier: Apache-2.0
#include "phases/context.hpp"

#include "records/text.hpp"

#include <cstddef>

namespace sonde::phases {

std::string lost_sentence(const Context& context, const std::string& when) {
    const int process = context.team.control().lost_process.load();
    const auto& nodes = context.tasks.node_of_process;
    if (process >= 0 && process < static_cast<int>(nodes.size()) &&
        context.team.control().lost_in_silence.load() != 0) {
        const int node = nodes[static_cast<std::size_t>(process)];
        const auto index = static_cast<std::size_t>(node);
        return (index < context.at_root.hosts.size() ? records::json_text(context.at_root.hosts[index])
                                                     : "node " + std::to_string(node)) +
               " was given up " + when +
               ": nothing was heard of it for longer than SONDE_NODE_PATIENCE; it hangs or its network is gone; "
               "finished "
               "phases are kept";
    }
    std::string who = "a process of another node died or cannot be reached any more";
    if (process >= 0 && process < static_cast<int>(nodes.size())) {
        const auto node = static_cast<std::size_t>(nodes[static_cast<std::size_t>(process)]);
        who = "process " + std::to_string(process) +
              (node < context.at_root.hosts.size() ? " on " + records::json_text(context.at_root.hosts[node])
                                                   : std::string()) +
              " died";
    }
    return who + " " + when + "; finished phases are kept";
}

}  // namespace sonde::phases
