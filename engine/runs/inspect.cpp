// SPDX-License-Identifier: Apache-2.0
#include "runs/inspect.hpp"

#include "files/file_map.hpp"
#include "files/removal.hpp"
#include "files/striping.hpp"
#include "plan/parse.hpp"
#include "records/environment.hpp"
#include "records/file_system.hpp"
#include "runs/extent.hpp"
#include "runs/target.hpp"

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

/// Whether striping is set file by file: a directory of the user's keeps the layout that it has.
bool stripes_files(const phases::Context& context) {
    return context.plan.target.striping && (context.in_place() || context.manifest.found);
}

/// Refuses what the file system cannot do, before anything is made.
void check_stripes(const plan::Plan& plan, const std::string& file_system) {
    if (!plan.target.striping) {
        return;
    }
    if (file_system.empty()) {
        throw plan::PlanError("target.striping: no backend of the plan makes files: leave it out");
    }
    try {
        files::check_striping(*plan.target.striping, file_system, plan.target.path, !plan.data.files.in_place());
    } catch (const std::invalid_argument& reason) {
        throw plan::PlanError(reason.what());
    }
}

/// Stripes the run directory, which has been made and is empty. One that was there already is left alone: a file that
/// is made and removed at once tells whether files in it can be striped.
void stripe(const phases::Context& context, const std::string& file_system, const std::string& directory) {
    const plan::Plan& plan = context.plan;
    const bool trees = std::any_of(plan.phases.begin(), plan.phases.end(),
                                   [](const plan::Phase& one) { return one.meta.has_value(); });
    if (plan.target.striping && context.manifest.found && trees) {
        throw plan::PlanError("target.striping: " + directory +
                              " is there already and keeps the layout that it has: let a plan for names make a "
                              "directory of its own (target.directory)");
    }
    if (!plan.target.striping) {
        return;
    }
    try {
        if (stripes_files(context)) {
            const std::string trial = directory + "/.sonde-striping-" + context.options.run_id;
            files::make_striped_file(*plan.target.striping, file_system, trial);
            ::unlink(trial.c_str());
        } else {
            files::stripe_directory(*plan.target.striping, file_system, directory);
        }
    } catch (const std::invalid_argument& reason) {
        throw plan::PlanError(reason.what());
    }
}

void make_directories(const files::FileMap& map) {
    for (const std::string& directory : map.directories()) {
        if (::mkdir(directory.c_str(), 0777) != 0 && errno != EEXIST) {
            throw EnvironmentError("cannot make " + directory + ": " + std::strerror(errno));
        }
    }
}

/// The plan's trees, and those of earlier runs in the same directory. A tree whose place is taken already is not ours,
/// unless an earlier run has left it.
std::vector<files::TreeRule> rules_at(const std::string& directory, const plan::Plan& plan) {
    std::vector<files::TreeRule> rules = files::rules_of(plan);
    const std::optional<files::Manifest> before = files::Manifest::load(directory);
    const std::vector<files::TreeRule> earlier = before ? before->trees.rules : std::vector<files::TreeRule>{};
    for (files::TreeRule& rule : rules) {
        const patterns::TreeShape shape(rule.tree);
        for (std::uint64_t copy = 0; rule.fresh && copy < shape.copies(); ++copy) {
            struct stat info {};
            rule.fresh = ::lstat((directory + "/" + shape.top(copy)).c_str(), &info) != 0;
        }
        const auto left = std::find_if(earlier.begin(), earlier.end(),
                                       [&rule](const files::TreeRule& one) { return one.tree.top == rule.tree.top; });
        rule.made = rule.fresh || (left != earlier.end() && left->made);
    }
    for (const files::TreeRule& rule : earlier) {
        if (std::find(rules.begin(), rules.end(), rule) == rules.end()) {
            rules.push_back(rule);
            rules.back().fresh = false;
        }
    }
    return rules;
}

/// Takes over what an earlier stage has left in the run directory, and says where that is.
std::string continue_stage(phases::Context& context) {
    const std::string name =
        context.plan.target.directory.empty() ? "sonde-" + context.options.run_id : context.plan.target.directory;
    const std::string directory = context.plan.target.path + "/" + name;
    const std::optional<files::Manifest> found = files::Manifest::load(directory);
    if (!found) {
        throw EnvironmentError("stage " + std::to_string(context.options.stage) +
                               " continues an earlier stage, but there is no manifest in " + directory);
    }
    if (found->tasks.threads != context.tasks.threads ||
        found->tasks.node_of_process.size() != context.tasks.node_of_process.size()) {
        throw EnvironmentError("stage " + std::to_string(context.options.stage) +
                               " must have as many tasks as the stage before (" + std::to_string(found->tasks.tasks()) +
                               ")");
    }
    context.manifest.data = found->data;
    context.manifest.trees = found->trees;
    context.manifest.found = found->found;
    context.manifest.half_write = found->half_write;
    context.manifest.half_read = found->half_read;
    files::Manifest here;
    here.stamp_this_process();
    if (here.host == found->host && here.boot == found->boot) {
        context.manifest.epoch_ns = found->epoch_ns;
    }
    return directory;
}

}  // namespace

std::string why_unseen(const phases::Context& context) {
    const std::string& host = context.team.place().host;
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
        const std::optional<files::Manifest> found = files::Manifest::load(context.storage.directory);
        if (found && found->run == context.options.run_id) {
            return {};
        }
        nanosleep(&pause, nullptr);
    }
    return host + " sees another target than the root: the run directory " + context.storage.directory +
           ", which the root has made, is not there" + advice;
}

json inspect(phases::Context& context, int first_stage) {
    const plan::Plan& plan = context.plan;
    const phases::RunOptions& options = context.options;
    const files::TaskMap& tasks = context.tasks;
    files::Manifest& manifest = context.manifest;
    check_tasks(plan, tasks);
    check_extent(plan, tasks, context.node_memory);
    json facts{{"files", needs_files(plan)}, {"directory", plan.target.path}, {"memory_backed", false}};
    if (facts.at("files").get<bool>()) {
        check_directory(plan.target.path);
    }
    check_machine(plan);
    if (!facts.at("files").get<bool>()) {
        check_stripes(plan, "");
        return facts;
    }
    const records::FileSystem fs = records::describe_file_system(plan.target.path);
    facts["memory_backed"] = fs.memory_backed;
    facts["file_system"] = fs.type;
    facts["full_stripe"] = plan.target.full_stripe.value_or(fs.stripe_width_bytes);
    if (first_stage > 0) {
        facts["directory"] = continue_stage(context);
    } else {
        const Footprint need = footprint(plan, tasks, context.node_memory);
        const std::uint64_t replaced = bytes_replaced(plan, tasks, context.node_memory);
        const std::uint64_t more = need.bytes - std::min(need.bytes, replaced);
        if (plan.data.files.across.empty()) {
            check_target(plan, more, need.files);
        } else {
            check_across(plan, more, need.files);
        }
        check_stripes(plan, fs.type);
        if (plan.data.files.in_place()) {
            make_directories(files::FileMap(plan.target.path, plan.data.files, tasks));
            stripe(context, fs.type, plan.target.path);
            facts["stripes_files"] = stripes_files(context);
            return facts;
        }
        const RunDirectory made = make_run_directory(plan, options.run_id);
        facts["directory"] = made.path;
        manifest.found = made.found;
        manifest.trees.rules = rules_at(made.path, plan);
    }
    manifest.has_data = plan.has_data;
    manifest.run = options.run_id;
    manifest.files = plan.data.files;
    manifest.tasks = tasks;
    manifest.stamp_this_process();
    try {
        manifest.save(facts.at("directory"));
        if (first_stage == 0) {
            stripe(context, fs.type, facts.at("directory"));
        }
        make_directories(files::FileMap(facts.at("directory"), plan.data.files, tasks));
    } catch (...) {
        if (!manifest.found) {
            files::remove_run(facts.at("directory"), manifest, false);
        }
        throw;
    }
    facts["stripes_files"] = stripes_files(context);
    return facts;
}

}  // namespace sonde::runs
