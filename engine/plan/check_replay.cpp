// SPDX-License-Identifier: Apache-2.0
#include "plan/check_replay.hpp"

#include "plan/plan_error.hpp"

#include <algorithm>
#include <utility>

namespace sonde::plan {
namespace {

/// Members that a replay does not use, because the list of operations says it.
void check_unused_members(const std::string& where, const Phase& phase) {
    const Stop& stop = phase.stop;
    for (const auto& [is_used, name] :
         {std::pair{stop.time || stop.stonewall || stop.min_time || stop.first_done || stop.operations, ".stop"},
          std::pair{!phase.data_of.empty(), ".data_of"}, std::pair{!phase.files.empty(), ".files"},
          std::pair{!phase.streams.empty(), ".streams"}, std::pair{phase.shift.by != ShiftBy::none, ".shift"},
          std::pair{phase.separate_process, ".process"}, std::pair{phase.barrier == Barrier::intra, ".barrier"},
          std::pair{phase.data.verify != Verify::none, ".verify"},
          std::pair{phase.data.access.read_ratio.has_value(), ".access.read_ratio"}}) {
        if (is_used) {
            throw_member_error(where + name,
                               "does not go with op = \"replay\", which does what its replay_file lists: leave it out");
        }
    }
    const Io& io = phase.data.io;
    for (const auto& [is_used, name] :
         {std::pair{io.queue_depth > 1, ".io.queue_depth"}, std::pair{io.collective, ".io.collective"},
          std::pair{io.view, ".io.view"}, std::pair{io.fsync != Fsync::none, ".io.fsync"},
          std::pair{io.preallocate != Preallocate::none, ".io.preallocate"}, std::pair{io.pause > 0, ".io.pause"},
          std::pair{io.rate_limit.has_value(), ".io.rate_limit"},
          std::pair{io.iops_limit.has_value(), ".io.iops_limit"}}) {
        if (is_used) {
            throw_member_error(
                phase.data_at + name,
                "does not go with op = \"replay\", which issues the calls of its replay_file one by one");
        }
    }
}

}  // namespace

void check_replay(const std::string& where, const Plan& plan, std::size_t index, const Capabilities& capabilities) {
    const Phase& phase = plan.phases[index];
    const bool replays = phase.op == Op::replay;
    if (!replays) {
        if (!phase.replay_file.empty() || phase.think_time != ThinkTime::as_traced) {
            throw_member_error(where + (phase.replay_file.empty() ? ".think_time" : ".replay_file"),
                               "is only used with op = \"replay\"");
        }
        if (plan.phases.front().op == Op::replay) {
            throw_member_error(where + ".op",
                               std::string("= \"") + operation_name(phase.op) +
                                   "\" does not go with op = \"replay\": all phases of a replay have this operation");
        }
        return;
    }
    if (plan.phases.front().op != Op::replay) {
        throw_member_error(where + ".op",
                           "= \"replay\" does not go with other operations: all phases of a replay have it");
    }
    if (phase.replay_file.empty()) {
        throw_member_error(where + ".replay_file", "is missing: op = \"replay\" needs the list of operations");
    }
    check_unused_members(where, phase);
    const BackendTraits& backend = capabilities.find_traits(phase.data.backend);
    if (!backend.supports_trees || backend.stores_objects || backend.needs_mpi) {
        throw_member_error(phase.data_at + ".backend",
                           "\"" + phase.data.backend +
                               "\" cannot replay operations on names: use \"posix\", \"null\" or "
                               "\"paced\"");
    }
    if (phase.data.files.mapping != Mapping::shared) {
        throw_member_error("data.files.mapping",
                           "must be \"shared\" with op = \"replay\": its list says which task uses which file");
    }
    if (plan.target.use_existing) {
        throw_member_error("target.use_existing",
                           "does not go with op = \"replay\": it writes only to files that it makes");
    }
}

}  // namespace sonde::plan
