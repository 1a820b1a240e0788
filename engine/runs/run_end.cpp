// SPDX-License-Identifier: Apache-2.0
#include "runs/run_end.hpp"

#include "files/file_map.hpp"
#include "files/object_run.hpp"
#include "files/removal.hpp"
#include "files/tree_removal.hpp"
#include "plan/check_objects.hpp"
#include "records/text.hpp"

#include <unistd.h>
#include <algorithm>

namespace sonde::runs {

using nlohmann::ordered_json;

namespace {

/// Removes files in place that writing phases created when the run ended before a phase of the plan removed them. Each
/// process removes its own. Returns the number of files.
std::uint64_t remove_unfinished_files(const phases::RunContext& context) {
    std::uint64_t removed = 0;
    if (context.plan.target.device) {
        return removed;  // a device holds no files
    }
    const int first = context.team.location().process * context.tasks.threads_per_process;
    for (std::size_t i = 0; !context.plan.target.keep && i < context.phases_begun; ++i) {
        const plan::Phase& phase = context.plan.phases[i];
        const files::FileMap map(context.storage.directory, phase.data.files, context.tasks);
        const bool creates_new = phase.op == plan::Op::write && phase.open == plan::OpenMode::truncate;
        for (int task = first;
             creates_new && task < std::min(first + context.tasks.threads_per_process, context.tasks.tasks()); ++task) {
            removed += map.is_first_task_of_file(task) && ::unlink(map.path(task, 0).c_str()) == 0 ? 1U : 0U;
        }
    }
    return removed;
}

/// A sentence when the run directory holds the manifest of another run: its name stands for another directory by now.
/// Empty when it holds this run's, or none that can be read: on a full file system none could be written.
std::string explain_foreign_manifest(const phases::RunContext& context, const files::ConfinedDirectory& directory) {
    std::optional<files::Manifest> manifest;
    try {
        manifest = files::Manifest::load(directory, files::Trust::anybody);
    } catch (const std::exception&) {
        return {};
    }
    return !manifest || manifest->run_id == context.options.run_id
               ? std::string()
               : directory.path() + " is the directory of another run by now: left alone";
}

/// Removes the objects of the run, and its manifest.
files::Removal remove_objects(const phases::RunContext& context) {
    try {
        return files::ObjectRun(context.plan.target, context.storage.directory).remove(context.manifest, false);
    } catch (const std::exception& error) {
        return {.remaining = {context.storage.directory + " could not be removed: " + error.what()}};
    }
}

}  // namespace

files::Removal remove_without_team(const phases::RunContext& context) {
    const plan::TargetSettings& target = context.plan.target;
    if (plan::has_object_target(target)) {
        return target.keep ? files::Removal{} : remove_objects(context);
    }
    if (!context.storage.makes_files || target.keep || context.in_place()) {
        return {};
    }
    // The open descriptor keeps referring to this directory, even if its path is exchanged later.
    files::ConfinedDirectory directory = context.open_directory();
    if (std::string complaint = explain_foreign_manifest(context, directory); !complaint.empty()) {
        return {.remaining = {std::move(complaint)}};
    }
    if (!target.use_existing) {
        return files::remove_run(files::open_run_directories(std::move(directory), context.manifest.files),
                                 context.manifest, false);
    }
    files::Manifest own_manifest = context.manifest;
    std::erase_if(own_manifest.trees.rules, [](const files::TreeRule& rule) { return !rule.was_created_now; });
    files::Removal removal;
    if (!own_manifest.trees.rules.empty()) {
        removal = files::remove_trees(directory, own_manifest, false);
    }
    if (!removal.remaining.empty()) {
        return removal;
    }
    if (context.manifest.directory_existed_before) {
        files::Manifest::remove(directory);  // the data stays, and `clean` must not remove it
    }
    return removal;
}

files::Removal remove_run_files(phases::RunContext& context, int code) {
    if (context.storage.makes_files && context.in_place()) {
        const bool unfinished = code != phases::exit_done && code != phases::exit_mismatch;
        return {unfinished ? remove_unfinished_files(context) : 0, 0, 0, {}};
    }
    if (!context.storage.makes_files || context.plan.target.keep || context.plan.target.use_existing) {
        return context.is_root() ? remove_without_team(context) : files::Removal{};
    }
    files::Removal removal;
    const ranks::ProcessLocation& location = context.team.location();
    const int first = location.process * context.tasks.threads_per_process;
    const files::Removal own_manifest = files::remove_files(context.storage.directory, context.manifest, first,
                                                            first + context.tasks.threads_per_process);
    context.shared.board->files_removed.fetch_add(
        own_manifest.files + files::remove_items(context.storage.directory, context.manifest, first,
                                                 first + context.tasks.threads_per_process));
    const std::uint64_t files_left = context.team.reduce_maximum(own_manifest.remaining.size());
    const std::string sum = context.team.reduce_text(
        std::to_string(context.shared.board->files_removed.load()),
        [](const std::string& a, const std::string& b) { return std::to_string(std::stoull(a) + std::stoull(b)); });
    if (context.is_root()) {
        // When files could not be removed, the manifest stays, so that `sonde clean` can remove them later.
        removal = files_left == 0 ? remove_without_team(context) : own_manifest;
        removal.files = files_left == 0 ? removal.files + std::stoull(sum) : std::stoull(sum);
        if (files_left > 0) {
            removal.remaining.push_back("files are left in " + context.storage.directory + ": `sonde clean " +
                                        context.plan.target.path + "` removes them when the storage answers");
        }
    }
    return removal;
}

bool creates_files(const plan::Plan& plan) {
    return std::any_of(plan.phases.begin(), plan.phases.end(), [](const plan::Phase& phase) {
        return plan::writes(phase.op) || phase.op == plan::Op::mktree || phase.op == plan::Op::create ||
               phase.op == plan::Op::cycle;
    });
}

std::optional<ordered_json> rejected_messages_finding(const ranks::Team::RejectedMessages& rejected) {
    if (rejected.foreign == 0 && rejected.repeated == 0) {
        return std::nullopt;
    }
    std::string text = "the nodes ignored ";
    if (rejected.foreign > 0) {
        text += std::to_string(rejected.foreign) + " datagrams without the key of this run";
    }
    if (rejected.repeated > 0) {
        text +=
            (rejected.foreign > 0 ? " and " : "") + std::to_string(rejected.repeated) + " copies of earlier datagrams";
    }
    return ordered_json{{"id", "rejected_messages"},
                        {"severity", "info"},
                        {"text", text + "; no result depends on them"},
                        {"advice", rejected.foreign > 0 ? "find out who sends to the UDP ports of the compute nodes"
                                                        : "nothing, unless their number is large"},
                        {"evidence", {{"foreign", rejected.foreign}, {"repeated", rejected.repeated}}}};
}

ordered_json end_line(const phases::Outcome& outcome, const std::optional<files::Removal>& removal,
                      std::int64_t elapsed_ns) {
    ordered_json end{
        {"status", outcome.status()}, {"exit_code", outcome.code}, {"seconds", static_cast<double>(elapsed_ns) / 1e9}};
    if (!outcome.text.empty()) {
        end["text"] = outcome.text;
    }
    if (removal) {
        end["files_removed"] = removal->files;
        end["files_left"] = ordered_json::array();
        for (const std::string& path : removal->remaining) {
            end["files_left"].push_back(records::to_json_text(path));
        }
    }
    return end;
}

ordered_json failed_end_line(int code, const std::string& text, std::int64_t elapsed_ns) {
    return {{"status", "failed"},
            {"exit_code", code},
            {"seconds", static_cast<double>(elapsed_ns) / 1e9},
            {"text", records::to_json_text(text)}};
}

void print_outcome(const phases::Outcome& outcome, const files::Removal& removal, const std::string& trouble) {
    std::string line = outcome.code == phases::exit_done ? std::string() : outcome.text;
    const auto add = [&line](const std::string& more) { line += (line.empty() ? "" : "; ") + more; };
    for (std::size_t i = 0; i < std::min<std::size_t>(2, removal.remaining.size()); ++i) {
        add(removal.remaining[i]);
    }
    if (removal.remaining.size() > 2) {
        add("and " + std::to_string(removal.remaining.size() - 2) + " more such, see the record");
    }
    if (!trouble.empty()) {
        add(trouble);
    }
    if (!line.empty()) {
        records::print_error(line);
    }
}

}  // namespace sonde::runs
