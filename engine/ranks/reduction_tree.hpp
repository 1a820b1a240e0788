// SPDX-License-Identifier: Apache-2.0
// Joins one text of each node at node 0, with any message transport. Pure control flow.
#pragma once

#include <string>
#include <utility>

namespace sonde::ranks {

/// Binomial tree: in round k, every other group of 2^k nodes hands its text to the group before it, so each node sends
/// one message at most and receives log2(nodes) at most, and texts are joined in the order of nodes. All nodes call it.
/// `send(node, text)` sends; `.allocate(node, text)` receives and is false when nothing will come any more; `join(a,
/// b)`. At node 0 the joined text; elsewhere empty.
template <class Send, class Receive, class Join>
std::string reduce_in_tree(int node, int nodes, std::string own_text, Send&& send, Receive&& receive, Join&& join) {
    for (int step = 1; step < nodes; step *= 2) {
        if ((node & step) != 0) {
            send(node - step, own_text);
            return {};
        }
        if (node + step < nodes) {
            std::string received_text;
            if (!receive(node + step, received_text)) {
                break;
            }
            own_text = join(std::move(own_text), std::move(received_text));
        }
    }
    return node == 0 ? std::move(own_text) : std::string();
}

}  // namespace sonde::ranks
