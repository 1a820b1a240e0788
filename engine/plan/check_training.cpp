// SPDX-License-Identifier: Apache-2.0
#include "plan/check_training.hpp"

#include "plan/plan_error.hpp"

#include <utility>

namespace sonde::plan {

void check_training(const std::string& where, const Phase& phase) {
    if (phase.op != Op::train) {
        if (phase.training) {
            throw_member_error(where + ".training", "is only used with op = \"train\"");
        }
        return;
    }
    if (!phase.training) {
        throw_member_error(where + ".training", "is missing: op = \"train\" needs batch_size and compute_time");
    }
    const Stop& stop = phase.stop;
    const Io& io = phase.data.io;
    const Access& access = phase.data.access;
    const bool sequential = access.order == AccessOrder::sequential;
    for (const auto& [is_used, name] :
         {std::pair{stop.operations.has_value(), ".stop.operations"}, std::pair{stop.wearout, ".stop.wearout"},
          std::pair{!phase.files.empty(), ".files"}, std::pair{phase.shift.by != ShiftBy::none, ".shift"},
          std::pair{phase.barrier == Barrier::intra, ".barrier"},
          std::pair{!phase.data.files.across.empty(), ".across"},
          std::pair{phase.data.verify != Verify::none, ".verify"}, std::pair{!sequential, ".access.order"},
          std::pair{io.collective, ".io.collective"}, std::pair{io.view, ".io.view"},
          std::pair{io.pause > 0, ".io.pause"}, std::pair{io.rate_limit.has_value(), ".io.rate_limit"},
          std::pair{io.iops_limit.has_value(), ".io.iops_limit"}}) {
        if (is_used) {
            throw_member_error(
                where + name,
                "does not go with op = \"train\", which reads whole samples as `training` says: leave it "
                "out");
        }
    }
    const Mapping mapping = phase.data.files.mapping;
    if (mapping != Mapping::many && mapping != Mapping::per_task && mapping != Mapping::shared) {
        throw_member_error("data.files.mapping", "must be \"many\", \"per_task\" or \"shared\" with op = \"train\"");
    }
}

}  // namespace sonde::plan
