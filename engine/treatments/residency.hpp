// SPDX-License-Identifier: Apache-2.0
// Residency: the fraction of the data in this node's page cache, measured before reads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sonde::treatments {

struct Residency {
    std::uint64_t pages = 0;  ///< examined
    std::uint64_t resident = 0;
    std::uint64_t dirty = 0;  ///< not yet written back, so that they cannot be dropped (cachestat only)
    bool is_known = false;    ///< false = no file could be examined
    double share() const { return pages == 0 ? 0.0 : static_cast<double>(resident) / static_cast<double>(pages); }
    void add(const Residency& other);
};

constexpr std::size_t max_examined_files = 256;

/// The bytes of a block device that a phase accesses; length 0 = to the end of the device.
struct DeviceRange {
    std::uint64_t offset = 0, length = 0;
};

/// Uses cachestat(2) where the kernel has it, else mincore(2) on a mapping. Of more than `max_files` files an even
/// sample is examined. Does not read pages into the cache. Holes count as not resident; empty files have no pages.
/// Of a block device, the pages of `range` count.
/// Files that this user neither owns nor may write are skipped, because the kernel reports all their pages as resident.
Residency measure_residency(const std::vector<std::string>& files, std::size_t max_files = max_examined_files,
                            const DeviceRange& range = {});

}  // namespace sonde::treatments
