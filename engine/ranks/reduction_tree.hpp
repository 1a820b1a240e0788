// SPDX-License-Identifier: Apache-2.0
// Joining one text of each node at node 0, over whatever carries messages. Pure control flow.
#pragma once

#include <string>
#include <utility>

namespace sonde::ranks {

/// Binomial tree: in round k, every other group of 2^k nodes hands its text to the group before it, so each node sends
/// one message at most and receives log2(nodes) at most, and texts are joined in the order of nodes. All nodes call it.
/// `give(node, text)` sends; `take(node, text)` receives and is false when nothing will come any more; `join(a, b)`.
/// At node 0 the joined text; elsewhere empty.
template <class Give, class Take, class Join>
std::string reduce_in_tree(int node, int nodes, std::string mine, Give&& give, Take&& take, Join&& join) {
    for (int step = 1; step < nodes; step *= 2) {
        if ((node & step) != 0) {
            give(node - step, mine);
            return {};
        }
        if (node + step < nodes) {
            std::string theirs;
            if (!take(node + step, theirs)) {
                break;
            }
            mine = join(std::move(mine), std::move(theirs));
        }
    }
    return node == 0 ? std::move(mine) : std::string();
}

}  // namespace sonde::ranks
