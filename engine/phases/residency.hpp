// SPDX-License-Identifier: Apache-2.0
// How much of the data sits in this node's page cache. Never trusted blindly: measured before reads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sonde::phases {

struct Residency {
    std::uint64_t pages = 0;  ///< looked at
    std::uint64_t resident = 0;
    bool known = false;  ///< false: no file could be asked
    double share() const { return pages == 0 ? 0.0 : static_cast<double>(resident) / static_cast<double>(pages); }
    void add(const Residency& other);
};

/// Asks cachestat(2) where the kernel has it, else mincore(2) over a mapping. Files beyond `max_files` are sampled
/// evenly. Does not itself bring pages in.
Residency measure_residency(const std::vector<std::string>& files, std::size_t max_files = 256);

}  // namespace sonde::phases
