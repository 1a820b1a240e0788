// SPDX-License-Identifier: Apache-2.0
#include "plan/check.hpp"

#include "plan/check_data.hpp"
#include "plan/check_device.hpp"
#include "plan/check_meta.hpp"
#include "plan/check_objects.hpp"
#include "plan/check_replay.hpp"
#include "plan/plan_error.hpp"

#include <algorithm>
#include <set>
#include <string>

namespace sonde::plan {
namespace {

/// Throws PlanError when the backend is unknown or lacks a feature. Whether it can run on this machine is checked when
/// the run begins.
void check_backend(const Phase& phase, const Capabilities& capabilities) {
    const std::string& where = phase.data_at;
    const std::string& name = phase.data.backend;
    const BackendCapability* backend = capabilities.find_backend(name);
    if (backend == nullptr) {
        std::string names;
        for (const BackendCapability& rule : capabilities.backends) {
            names += (names.empty() ? "" : ", ") + std::string(rule.name);
        }
        throw_member_error(where + ".backend", "is \"" + name + "\", but there are only " + names);
    }
    const BackendTraits& can = backend->traits;
    const Io& io = phase.data.io;
    const auto others = [&capabilities](bool BackendTraits::*trait) { return capabilities.list_backends_with(trait); };
    if (io.queue_depth > 1 && !can.supports_queue) {
        throw_member_error(where + ".io.queue_depth", "is " + std::to_string(io.queue_depth) + ", but backend \"" +
                                                          name + "\" does one operation at a time: use backend = \"" +
                                                          others(&BackendTraits::supports_queue) + "\", or more tasks");
    }
    if (io.direct && !can.supports_direct) {
        throw_member_error(where + ".io.direct",
                           "does not go with backend \"" + name + "\": use " + others(&BackendTraits::supports_direct));
    }
    if (io.sync_flag != SyncFlag::none && !can.supports_sync) {
        throw_member_error(where + ".io.sync", "does not go with backend \"" + name + "\": use io.fsync, or " +
                                                   others(&BackendTraits::supports_sync));
    }
    if (io.collective && io.queue_depth > 1) {
        throw_member_error(where + ".io.collective", "needs queue_depth = 1");
    }
    if (phase.meta && !can.supports_trees) {
        throw_member_error(where + ".backend", "\"" + name + "\" has no operations on names: use " +
                                                   others(&BackendTraits::supports_trees));
    }
    if (phase.op == Op::walk && !can.stores_data) {
        throw_member_error(where + ".op", "= \"walk\" finds what is there, but backend \"" + name +
                                              "\" keeps nothing: use " + others(&BackendTraits::supports_trees));
    }
    if (phase.data.verify != Verify::none && !can.stores_data) {
        throw_member_error(where + ".verify", "is impossible: backend \"" + name + "\" keeps no data");
    }
}

/// Rules for the virtual clocks of the paced backend, which are independent for each task.
void check_paced(const std::string& where, const Phase& phase, const BackendTraits& backend) {
    const Paced& paced = phase.data.paced;
    if (paced.latency > 3'600'000'000'000) {
        throw_member_error("data.paced.latency", "must be at most 1 h");
    }
    if (!backend.supports_virtual_time || !paced.virtual_clock) {
        return;
    }
    if ((phase.stop.time || phase.stop.min_time) && paced.schedule.empty() && paced.latency == 0) {
        throw_member_error(where + ".stop",
                           "needs time to pass, but data.paced has neither rate nor latency: give it one");
    }
    if (phase.stop.first_done) {
        throw_member_error(where + ".stop.first_done", "stops tasks at the same moment, but with backend \"" +
                                                           phase.data.backend +
                                                           "\" each task has its own virtual clock: set "
                                                           "paced.virtual_clock = false");
    }
}

void check_files(const std::string& where, const Files& files, bool replays) {
    if (files.mapping == Mapping::per_group && files.group_size == 0) {
        throw_member_error(where + ".files.group_size", "is missing: mapping = \"per_group\" needs it");
    }
    if (files.mapping != Mapping::per_group && files.group_size != 0) {
        throw_member_error(where + ".files.group_size", "is only used with mapping = \"per_group\"");
    }
    if (files.mapping != Mapping::many && files.count != 1 && !(files.mapping == Mapping::shared && replays)) {
        throw_member_error(where + ".files.count", "is only used with mapping = \"many\", and by op = \"replay\"");
    }
    if (files.mapping == Mapping::shared && files.directories == DirectoryMapping::per_task) {
        throw_member_error(where + ".files.directories", "= \"per_task\" does not go with one shared file");
    }
}

void check_stop(const std::string& where, const Stop& stop) {
    if (stop.wearout && !stop.stonewall) {
        throw_member_error(where + ".stop.wearout", "needs stop.stonewall: it says what happens after it");
    }
    if (stop.time && (stop.stonewall || stop.min_time || stop.first_done)) {
        throw_member_error(where + ".stop.time", "stands alone: it already says when the phase ends");
    }
    if (stop.stonewall && stop.min_time && *stop.min_time > *stop.stonewall) {
        throw_member_error(where + ".stop.min_time", "is longer than stop.stonewall");
    }
    if (stop.first_done && stop.wearout) {
        throw_member_error(where + ".stop.first_done",
                           "does not go with wearout: one stops all tasks, the other lets them finish");
    }
}

void check_treatments(const std::string& where, const std::vector<Treatment>& before,
                      const Capabilities& capabilities) {
    for (std::size_t i = 0; i < before.size(); ++i) {
        const TreatmentCapability* rule = capabilities.find_treatment(before[i].kind);
        const std::string missing =
            rule != nullptr && rule->explain_missing_member != nullptr ? rule->explain_missing_member(before[i]) : "";
        if (!missing.empty()) {
            throw PlanError("plan: " + where + ".before[" + std::to_string(i) + "]." + missing);
        }
    }
}

void check_members_with_paths(const std::string& where, const Plan& plan) {
    const Files& files = plan.data.files;
    if (files.paths.empty()) {
        return;
    }
    if (files.mapping == Mapping::per_node || files.mapping == Mapping::many) {
        throw_member_error(where + ".paths", "goes with mapping = \"shared\", \"per_task\" or \"per_group\"");
    }
    if (files.paths.size() > 1 && (files.mapping == Mapping::shared || files.directories != DirectoryMapping::one)) {
        throw_member_error(where + ".paths",
                           "with more than one path needs mapping = \"per_task\" and directories = \"one\"");
    }
    if (files.directories == DirectoryMapping::per_node) {
        throw_member_error(where + ".directories", "= \"per_node\" does not go with paths");
    }
    if (!plan.target.use_existing || !plan.target.directory.empty()) {
        throw_member_error(
            "target", "must have use_existing and no directory, because data.files.paths says where the files lie");
    }
    if (std::any_of(plan.phases.begin(), plan.phases.end(), [](const Phase& p) { return p.separate_process; })) {
        throw_member_error(where + ".paths",
                           "does not go with process = \"separate\": there is no run directory for a manifest");
    }
}

/// Rules for data.files.across: directories of several targets.
void check_members_with_across(const std::string& where, const Plan& plan) {
    const Files& files = plan.data.files;
    if (files.across.empty()) {
        return;
    }
    if (files.in_place() || plan.target.use_existing) {
        throw_member_error(where + ".across", "needs a directory that the run makes itself: leave out " +
                                                  std::string(files.in_place() ? "paths" : "target.use_existing"));
    }
    if (files.mapping == Mapping::shared || files.mapping == Mapping::per_node) {
        throw_member_error(
            where + ".across",
            "deals out the files of tasks: it goes with mapping = \"per_task\", \"per_group\" or \"many\"");
    }
    if (files.directories == DirectoryMapping::per_node) {
        throw_member_error(where + ".directories", "= \"per_node\" does not go with across");
    }
    if (plan.target.striping) {
        throw_member_error("target.striping",
                           "does not go with data.files.across: each of its directories has a layout of its own");
    }
    std::vector<std::string> targets{plan.target.path};
    for (const std::string& path : files.across) {
        if (std::find(targets.begin(), targets.end(), path) != targets.end()) {
            throw_member_error(where + ".across",
                               "names " + path + " twice, or the target itself: each is another target");
        }
        targets.push_back(path);
    }
    for (const Phase& phase : plan.phases) {
        if (std::any_of(phase.before.begin(), phase.before.end(),
                        [](const Treatment& treatment) { return treatment.kind == "remount"; })) {
            throw_member_error(where + ".across", "does not go with the treatment remount of phase \"" + phase.id +
                                                      "\", which mounts one file system anew: use drop_page_cache");
        }
    }
}

void check_within(const Plan& plan, std::size_t index) {
    const Phase& phase = plan.phases[index];
    const std::string where = "phases[" + std::to_string(index) + "].stop.within";
    const auto end = plan.phases.begin() + static_cast<std::ptrdiff_t>(index);
    const auto earlier_phase = std::find_if(plan.phases.begin(), end,
                                            [&phase](const Phase& earlier) { return earlier.id == phase.stop.within; });
    if (earlier_phase == end || earlier_phase->op != phase.op) {
        throw_member_error(where, "names \"" + phase.stop.within +
                                      "\", but no earlier phase of that name does op = \"" + operation_name(phase.op) +
                                      "\"");
    }
    if (std::any_of(earlier_phase + 1, end + 1, [](const Phase& later) { return later.separate_process; })) {
        throw_member_error(where,
                           "names \"" + phase.stop.within +
                               "\", which runs in an earlier process: what each task did there is not known any more");
    }
}

void check_phase(const Plan& plan, std::size_t index, const Capabilities& capabilities) {
    const Phase& phase = plan.phases[index];
    const std::string where = "phases[" + std::to_string(index) + "]";
    check_objects(plan, index, capabilities);
    check_paced(where, phase, capabilities.find_traits(phase.data.backend));
    check_stop(where, phase.stop);
    check_replay(where, plan, index, capabilities);
    check_treatments(where, phase.before, capabilities);
    if (phase.meta) {
        check_meta(where, plan, index);
    } else {
        check_data(where, plan, index, capabilities);
    }
}

}  // namespace

void check_plan(const Plan& plan, const Capabilities& capabilities) {
    std::set<std::string> ids;
    for (std::size_t i = 0; i < plan.phases.size(); ++i) {
        if (!ids.insert(plan.phases[i].id).second) {
            throw_member_error("phases[" + std::to_string(i) + "].id", "\"" + plan.phases[i].id + "\" is used twice");
        }
        check_phase(plan, i, capabilities);
        if (!plan.phases[i].stop.within.empty()) {
            check_within(plan, i);
        }
    }
    check_object_target(plan, capabilities);
    check_device(plan, capabilities);
    check_files("data", plan.data.files, plan.phases.front().op == Op::replay);
    check_members_with_across("data.files", plan);
    check_members_with_paths("data.files", plan);
    if (plan.observe.slice < 1000 || plan.observe.slice > 60'000'000'000) {
        throw_member_error("observe.slice", "must be from 1 us to 1 min");
    }
    for (const auto& [limit, name] : {std::pair{plan.time_limit, "time"}, std::pair{plan.begin_limit, "begin"}}) {
        if (limit && *limit <= 0) {
            throw_member_error(std::string("limits.") + name, "must be more than zero");
        }
    }
    for (const Phase& phase : plan.phases) {
        check_backend(phase, capabilities);
    }
}

}  // namespace sonde::plan
