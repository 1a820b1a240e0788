// SPDX-License-Identifier: Apache-2.0
// Busy time of each part of a machine, and the part that limits a phase.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace sonde::simulate {

struct PartLoad {
    const char* kind = "";  ///< "link", "server", "metadata journal", "storage target", "drives", "forwarder"
    std::string part;
    double busy_s = 0;  ///< of the busiest direction or drive; of several threads their mean
};

/// The busiest part of an interval.
struct Bottleneck {
    std::string kind, part;
    double utilization = 0;         ///< 0..1
    std::size_t similar_count = 0;  ///< parts of that kind within 5 % of it, with it
    std::size_t kind_count = 0;     ///< parts of that kind
};
/// From the loads at both ends of an interval of that length. Without parts the kind is empty.
Bottleneck find_bottleneck(const std::vector<PartLoad>& before, const std::vector<PartLoad>& after, double seconds);

}  // namespace sonde::simulate
