// SPDX-License-Identifier: Apache-2.0
#include "runs/inspection.hpp"

#include "files/file_map.hpp"
#include "files/removal.hpp"
#include "layouts/striping.hpp"
#include "plan/check_objects.hpp"
#include "plan/plan_error.hpp"
#include "plan/units.hpp"
#include "records/block_device.hpp"
#include "records/environment.hpp"
#include "records/file_system.hpp"
#include "runs/bucket.hpp"
#include "runs/device_target.hpp"
#include "runs/footprint.hpp"
#include "runs/manifest_state.hpp"
#include "runs/run_directory.hpp"
#include "runs/target_checks.hpp"

#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace sonde::runs {
namespace {

using nlohmann::json;

/// Whether striping is set on each file, because a directory of the user keeps its layout.
bool stripes_files(const phases::RunContext& context) {
    return context.plan.target.striping && (context.in_place() || context.manifest.directory_existed_before);
}

/// Throws when the file system does not support the requested striping.
void check_stripes(const plan::Plan& plan, const std::string& file_system) {
    if (!plan.target.striping) {
        return;
    }
    if (file_system.empty()) {
        throw plan::PlanError("target.striping: no backend of the plan makes files: leave it out");
    }
    try {
        layouts::check_striping(*plan.target.striping, file_system, plan.target.path, !plan.data.files.in_place());
    } catch (const std::invalid_argument& reason) {
        throw plan::PlanError(reason.what());
    }
}

/// Sets the striping of the new, empty run directory. An existing directory is not changed; a trial file shows whether
/// files in it can be striped.
void stripe_run_directory(const phases::RunContext& context, const std::string& file_system,
                          const files::ConfinedDirectory& directory) {
    const plan::Plan& plan = context.plan;
    const bool trees = std::any_of(plan.phases.begin(), plan.phases.end(),
                                   [](const plan::Phase& phase) { return phase.meta.has_value(); });
    if (plan.target.striping && context.manifest.directory_existed_before && trees) {
        throw plan::PlanError("target.striping: " + directory.path() +
                              " is there already and keeps the layout that it has: let a plan for names make a "
                              "directory of its own (target.directory)");
    }
    if (!plan.target.striping) {
        return;
    }
    try {
        if (stripes_files(context)) {
            const std::string trial = ".sonde-striping-" + context.options.run_id;
            layouts::make_striped_file(*plan.target.striping, file_system, directory, trial);
            directory.unlink(trial);
        } else {
            layouts::stripe_directory(*plan.target.striping, file_system, directory);
        }
    } catch (const std::invalid_argument& reason) {
        throw plan::PlanError(reason.what());
    }
}

/// Makes the directories of files that lie where the plan's paths say.
void make_directories_in_place(const files::FileMap& map) {
    for (const std::string& directory : map.directories()) {
        if (::mkdir(directory.c_str(), 0777) != 0 && errno != EEXIST) {
            throw EnvironmentError("cannot make " + directory + ": " + std::strerror(errno));
        }
    }
}

/// The manifest of an earlier run of the caller; empty when there is none that counts.
std::optional<files::Manifest> load_own_manifest(const files::ConfinedDirectory& directory) {
    try {
        return files::Manifest::load(directory, files::Trust::caller);
    } catch (const files::UntrustedManifestError&) {
        return std::nullopt;  // make_run_directory() has printed the reason
    }
}

/// Rules of the plan's trees and of trees of earlier runs in the same directory. An existing tree does not belong to
/// this run unless an earlier run created it.
std::vector<files::TreeRule> list_tree_rules_of(const files::ConfinedDirectory& directory, const plan::Plan& plan) {
    std::vector<files::TreeRule> rules = files::list_tree_rules(plan);
    const std::optional<files::Manifest> manifest = load_own_manifest(directory);
    const std::vector<files::TreeRule> earlier = manifest ? manifest->trees.rules : std::vector<files::TreeRule>{};
    for (files::TreeRule& rule : rules) {
        const patterns::TreeShape shape(rule.tree);
        for (std::uint64_t copy = 0; rule.was_created_now && copy < shape.copies(); ++copy) {
            struct stat info {};
            rule.was_created_now = directory.status(shape.top_name(copy), info) != 0;
        }
        const auto previous = std::find_if(earlier.begin(), earlier.end(), [&rule](const files::TreeRule& phase) {
            return phase.tree.top == rule.tree.top;
        });
        rule.created_by_run = rule.was_created_now || (previous != earlier.end() && previous->created_by_run);
    }
    for (const files::TreeRule& rule : earlier) {
        if (std::find(rules.begin(), rules.end(), rule) == rules.end()) {
            rules.push_back(rule);
            rules.back().was_created_now = false;
        }
    }
    return rules;
}

/// Takes over what an earlier stage has left in the run directory, and opens it.
files::ConfinedDirectory continue_stage(phases::RunContext& context) {
    const std::string name =
        context.plan.target.directory.empty() ? "sonde-" + context.options.run_id : context.plan.target.directory;
    files::ConfinedDirectory directory = files::ConfinedDirectory::open_made(context.plan.target.path + "/" + name);
    const std::optional<files::Manifest> manifest = files::Manifest::load(directory, files::Trust::caller);
    if (!manifest) {
        throw EnvironmentError("stage " + std::to_string(context.options.stage) +
                               " continues an earlier stage, but there is no manifest in " + directory.path());
    }
    continue_manifest(context, *manifest);
    return directory;
}

/// Bytes and files that the plan adds to the target, without the bytes of files that it replaces.
Footprint compute_growth(const phases::RunContext& context, StonewallCount counts) {
    Footprint growth = compute_footprint(context.plan, context.tasks, context.node_memory, counts);
    const std::uint64_t replaced = count_replaced_bytes(context.plan, context.tasks, context.node_memory, counts);
    growth.bytes -= std::min(growth.bytes, replaced);
    return growth;
}

/// Throws when the target has less room than the plan needs.
void check_space(const phases::RunContext& context) {
    const plan::Plan& plan = context.plan;
    const Footprint growth = compute_growth(context, StonewallCount::nothing);
    if (plan.data.files.across.empty()) {
        check_target(plan, growth.bytes, growth.file_count);
    } else {
        check_room_across_targets(plan, growth.bytes, growth.file_count);
    }
}

/// The finding about phases that a stonewall ends, if their whole volume leaves less than target.min_free; null
/// otherwise. Only for one file system: the files of `across` may be on several.
json find_unlimited_volume(const phases::RunContext& context, const records::FileSystem& fs) {
    const plan::Plan& plan = context.plan;
    const std::uint64_t most = compute_growth(context, StonewallCount::whole_volume).bytes;
    if (!plan.data.files.across.empty() || fs.total_bytes == 0 ||
        (most <= fs.available_bytes && plan.target.min_free <= fs.available_bytes - most)) {
        return nullptr;
    }
    return {{"id", "may_fill_file_system"},
            {"severity", "info"},
            {"text", "a stonewall ends this run; without it the run would write " + plan::format_bytes(most) +
                         ", but " + plan.target.path + " has " + plan::format_bytes(fs.available_bytes) +
                         " free and must keep " + plan::format_bytes(plan.target.min_free) +
                         " (target.min_free): storage that is fast enough is filled before the stonewall"},
            {"advice", "set a volume that fits (data.access.volume, or fewer items), or a shorter stonewall"},
            {"evidence",
             {{"most_bytes", most}, {"available_bytes", fs.available_bytes}, {"min_free", plan.target.min_free}}}};
}

/// Saves the manifest in the run directory, stripes the directory when `stripe_type` names its file system, and makes
/// the directories of the files. When that fails, a directory that this run has made is removed.
void prepare_run_directory(phases::RunContext& context, files::ConfinedDirectory directory,
                           const std::string* stripe_type) {
    files::Manifest& manifest = context.manifest;
    fill_manifest(context);
    try {
        manifest.save(directory);
        if (stripe_type != nullptr) {
            stripe_run_directory(context, *stripe_type, directory);
        }
        make_directories_of_files(directory, files::FileMap(directory.path(), context.plan.data.files, context.tasks),
                                  context.options.stage > 0);
    } catch (...) {
        if (!manifest.directory_existed_before) {
            files::remove_run(files::open_run_directories(std::move(directory), manifest.files), manifest, false);
        }
        throw;
    }
}

}  // namespace

std::string explain_unseen_target(const phases::RunContext& context) {
    const std::string& host = context.team.location().host;
    const std::string& target = context.plan.target.path;
    const std::string advice = ": mount the same file system there, or leave that node out";
    if (context.in_place()) {
        const std::string type = records::describe_file_system(target).type;
        return type == context.storage.file_system
                   ? std::string()
                   : host + " sees another target than the root: " + target + " is " +
                         (type.empty() ? "nothing" : type) + " there, not " + context.storage.file_system + advice;
    }
    // A network file system may show a new directory a moment later.
    constexpr int tries = 30;
    const timespec pause{0, 100'000'000};
    for (int i = 0; i < tries; ++i) {
        const std::optional<files::Manifest> manifest =
            files::Manifest::load(context.open_directory(), files::Trust::anybody);
        if (manifest && manifest->run_id == context.options.run_id) {
            return {};
        }
        nanosleep(&pause, nullptr);
    }
    return host + " sees another target than the root: the run directory " + context.storage.directory +
           ", which the root has made, is not there" + advice;
}

json inspect_target(phases::RunContext& context, int first_stage) {
    const plan::Plan& plan = context.plan;
    check_device_options(plan, context.options);
    check_tasks(plan, context.tasks);
    check_extent(plan, context.tasks, context.node_memory);
    json facts{{"files", needs_files(plan)}, {"directory", plan.target.path}, {"memory_backed", false}};
    const bool has_files = needs_files(plan);
    if (has_files && !plan.target.device) {
        check_directory(plan.target.path);
    }
    check_machine(plan);
    if (plan.target.device) {
        claim_device(context);
        const nlohmann::ordered_json device = describe_device_target(plan.target.path);
        facts["file_system"] = device.at("type");
        if (device.contains("block_device")) {
            facts["maximum_request"] = device.at("block_device").value("maximum_request_bytes", plan::Bytes{0});
        }
        facts["full_stripe"] = plan.target.full_stripe.value_or(0);
        facts["device"] = context.storage.device;
        return facts;
    }
    if (plan::has_object_target(plan.target)) {
        facts["directory"] = open_bucket(context, first_stage);
        return facts;
    }
    if (!has_files) {
        check_stripes(plan, "");
        return facts;
    }
    const records::FileSystem fs = records::describe_file_system(plan.target.path);
    facts["memory_backed"] = fs.memory_backed;
    facts["file_system"] = fs.type;
    if (const json device = records::describe_block_device_of_mount(fs.device, fs.source); !device.is_null()) {
        facts["maximum_request"] = device.value("maximum_request_bytes", plan::Bytes{0});
    }
    facts["full_stripe"] = plan.target.full_stripe.value_or(fs.stripe_width_bytes);
    files::ConfinedDirectory directory;
    if (first_stage > 0) {
        directory = continue_stage(context);
    } else {
        check_space(context);
        context.root_state.space_finding = find_unlimited_volume(context, fs);
        check_stripes(plan, fs.type);
        if (plan.data.files.in_place()) {
            make_directories_in_place(files::FileMap(plan.target.path, plan.data.files, context.tasks));
            stripe_run_directory(context, fs.type, files::ConfinedDirectory::open(plan.target.path));
            facts["stripes_files"] = stripes_files(context);
            return facts;
        }
        RunDirectory run_directory = make_run_directory(plan, context.options.run_id);
        context.manifest.directory_existed_before = run_directory.existed_before;
        context.manifest.trees.rules = list_tree_rules_of(run_directory.directory, plan);
        directory = std::move(run_directory.directory);
    }
    facts["directory"] = directory.path();
    prepare_run_directory(context, std::move(directory), first_stage == 0 ? &fs.type : nullptr);
    facts["stripes_files"] = stripes_files(context);
    return facts;
}

}  // namespace sonde::runs
