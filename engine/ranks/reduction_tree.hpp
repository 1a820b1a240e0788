// SPDX-License-Identifier: Apache-2.0
// Reduces one text per node to one text at node 0. The caller supplies send, receive and join.
#pragma once

#include <string>
#include <utility>

namespace sonde::ranks {

/// Binomial tree: in round k, the first node of every second group of 2^k nodes sends its text to the first node of the
/// group before it. A node sends at most one message and receives at most log2(nodes). Texts are joined in the order of
/// nodes. All nodes call this function. `send(node, text)` sends; `receive(node, text)` returns false when no message
/// will arrive; `join(a, b)` returns the joined text. Returns the joined text at node 0, an empty text elsewhere.
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
