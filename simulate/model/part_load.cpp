// SPDX-License-Identifier: Apache-2.0
#include "model/part_load.hpp"

#include <algorithm>

namespace sonde::simulate {

Bottleneck find_bottleneck(const std::vector<PartLoad>& before, const std::vector<PartLoad>& after, double seconds) {
    Bottleneck busiest;
    std::vector<double> utilizations;
    for (std::size_t i = 0; i < after.size(); ++i) {
        // A part may have work planned beyond the end of the interval.
        const double busy_s = after[i].busy_s - (i < before.size() ? before[i].busy_s : 0);
        utilizations.push_back(seconds > 0 ? std::clamp(busy_s / seconds, 0.0, 1.0) : 0);
        if (busiest.kind.empty() || utilizations[i] > busiest.utilization) {
            busiest.kind = after[i].kind;
            busiest.part = after[i].part;
            busiest.utilization = utilizations[i];
        }
    }
    for (std::size_t i = 0; i < after.size(); ++i) {
        busiest.kind_count += after[i].kind == busiest.kind ? 1 : 0;
        busiest.similar_count += after[i].kind == busiest.kind && utilizations[i] >= 0.95 * busiest.utilization ? 1 : 0;
    }
    return busiest;
}

}  // namespace sonde::simulate
