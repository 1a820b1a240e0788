// SPDX-License-Identifier: Apache-2.0
// How much of the data sits in this node's page cache. Never trusted blindly: measured before reads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sonde::treatments {

struct Residency {
    std::uint64_t pages = 0;  ///< looked at
    std::uint64_t resident = 0;
    std::uint64_t dirty = 0;  ///< not yet written back, so that they cannot be dropped (cachestat only)
    bool known = false;       ///< false: no file could be asked
    double share() const { return pages == 0 ? 0.0 : static_cast<double>(resident) / static_cast<double>(pages); }
    void add(const Residency& other);
};

/// Asks cachestat(2) where the kernel has it, else mincore(2) over a mapping. Files beyond `max_files` are sampled
/// evenly. Does not itself bring pages in. Holes and the part of a file that was never read count as not resident;
/// empty files count no pages. A file that is neither ours nor writable is left out: the kernel would tell a stranger
/// that all of it is resident.
Residency measure_residency(const std::vector<std::string>& files, std::size_t max_files = 256);

}  // namespace sonde::treatments
