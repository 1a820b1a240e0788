// SPDX-License-Identifier: Apache-2.0
#include "plan/meta.hpp"

namespace sonde::plan {

std::uint64_t count_leaf_directories(const Tree& tree) {
    std::uint64_t count = 1;
    for (int level = 0; level < tree.depth && tree.branching > 1; ++level) {
        count *= static_cast<std::uint64_t>(tree.branching);
        if (count > max_directories) {
            return 0;
        }
    }
    return count;
}

std::uint64_t count_directories(const Tree& tree) {
    if (tree.branching == 1) {
        return static_cast<std::uint64_t>(tree.depth) + 1;
    }
    std::uint64_t level_size = 1;
    std::uint64_t count = 1;
    for (int level = 0; level < tree.depth; ++level) {
        level_size *= static_cast<std::uint64_t>(tree.branching);
        count += level_size;
        if (level_size > max_directories || count > max_directories) {
            return 0;
        }
    }
    return count;
}

}  // namespace sonde::plan
