// SPDX-License-Identifier: Apache-2.0
#include "plan/check_device.hpp"

#include "plan/check_objects.hpp"
#include "plan/plan_error.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace sonde::plan {
namespace {

constexpr std::array device_operations{Op::write, Op::rewrite, Op::read, Op::reread, Op::read_only, Op::mixed};

/// Members that are for files or directories.
void check_target_members(const Plan& plan) {
    const TargetSettings& target = plan.target;
    for (const auto& [is_given, member] :
         {std::pair{!target.directory.empty(), "target.directory"},
          std::pair{target.use_existing, "target.use_existing"}, std::pair{target.keep, "target.keep"},
          std::pair{target.striping.has_value(), "target.striping"},
          std::pair{!plan.data.files.paths.empty(), "data.files.paths"},
          std::pair{!plan.data.files.across.empty(), "data.files.across"}}) {
        if (is_given) {
            throw_member_error(member, "is for files, but the target is a block device: leave it out");
        }
    }
    if (plan.data.files.mapping != Mapping::shared) {
        throw_member_error(
            "data.files.mapping",
            "gives tasks files of their own, but a block device is one range of bytes: use \"shared\", where each of "
            "n tasks gets every n-th block (with block = volume: one region)");
    }
}

void check_device_phase(const std::string& where, const Phase& phase, const Capabilities& capabilities) {
    if (phase.meta ||
        std::find(device_operations.begin(), device_operations.end(), phase.op) == device_operations.end()) {
        throw_member_error(where + ".op",
                           std::string("= \"") + operation_name(phase.op) +
                               "\" needs files, but the target is a block device: use write, rewrite, read or mixed");
    }
    const BackendTraits traits = capabilities.find_traits(phase.data.backend);
    if (!traits.needs_files || traits.needs_mpi) {
        throw_member_error(
            phase.data_at + ".backend",
            "is \"" + phase.data.backend + "\", which accesses no block devices: use posix, io_uring or mmap");
    }
    if (phase.open == OpenMode::exclusive) {
        throw_member_error(where + ".open",
                           "= \"exclusive\" makes a new file, but the target is a block device: leave it out");
    }
    if (phase.data.io.preallocate != Preallocate::none) {
        throw_member_error(phase.data_at + ".io.preallocate",
                           "is for files: a block device has its size. Leave it out");
    }
    if (phase.separate_process) {
        throw_member_error(where + ".process",
                           "= \"separate\" needs a run directory, but the target is a block device");
    }
    for (const Treatment& treatment : phase.before) {
        if (treatment.kind == "remount") {
            throw_member_error(where + ".before",
                               "has a remount, but the target is a block device: use drop_page_cache");
        }
    }
}

}  // namespace

void set_device(Plan& plan) {
    if (!plan.target.device) {
        return;
    }
    plan.data.files.device = plan.target.path;
    for (Phase& phase : plan.phases) {
        phase.data.files.device = plan.target.path;
    }
}

void check_device(const Plan& plan, const Capabilities& capabilities) {
    if (!plan.target.device) {
        return;
    }
    if (has_object_target(plan.target)) {
        throw_member_error("target.device", "does not go with a bucket: leave it out");
    }
    if (!plan.target.path.starts_with('/')) {
        throw_member_error("target.path",
                           "is " + plan.target.path +
                               ", but a block device is named in full: write /dev/NAME or /dev/disk/by-id/NAME");
    }
    check_target_members(plan);
    for (std::size_t i = 0; i < plan.phases.size(); ++i) {
        check_device_phase("phases[" + std::to_string(i) + "]", plan.phases[i], capabilities);
    }
}

}  // namespace sonde::plan
