// SPDX-License-Identifier: Apache-2.0
#include "runs/ending.hpp"

#include "files/file_map.hpp"
#include "files/tree_removal.hpp"
#include "plan/parse.hpp"
#include "records/text.hpp"

#include <unistd.h>
#include <algorithm>

namespace sonde::runs {

using nlohmann::ordered_json;

namespace {

/// Files that lie in place are removed by phases of the plan; when the run did not come so far, what its writing phases
/// made anew is removed here by the processes that made it. How many files.
std::uint64_t remove_unfinished(const phases::Context& context) {
    std::uint64_t removed = 0;
    const int first = context.team.place().process * context.tasks.threads;
    for (std::size_t i = 0; !context.plan.target.keep && i < context.begun; ++i) {
        const plan::Phase& phase = context.plan.phases[i];
        const files::FileMap map(context.storage.directory, phase.data.files, context.tasks);
        const bool made = phase.op == plan::Op::write && phase.open == plan::Open::truncate;
        for (int task = first; made && task < std::min(first + context.tasks.threads, context.tasks.tasks()); ++task) {
            removed += map.first_of_file(task) && ::unlink(map.path(task, 0).c_str()) == 0 ? 1U : 0U;
        }
    }
    return removed;
}

}  // namespace

files::Removal remove_alone(const phases::Context& context) {
    const plan::Target& target = context.plan.target;
    if (!context.storage.makes_files || target.keep || context.in_place()) {
        return {};
    }
    if (!target.use_existing) {
        return files::remove_run(context.storage.directory, context.manifest, false);
    }
    files::Manifest own = context.manifest;
    std::erase_if(own.trees.rules, [](const files::TreeRule& rule) { return !rule.fresh; });
    files::Removal removal;
    if (!own.trees.rules.empty()) {
        removal = files::remove_trees(context.storage.directory, own, false);
    }
    if (!removal.left.empty()) {
        return removal;
    }
    if (context.manifest.found) {
        files::Manifest::remove(context.storage.directory);  // the data stays, and `clean` has nothing to do here
    }
    return removal;
}

files::Removal clean_up(phases::Context& context, int code) {
    if (context.storage.makes_files && context.in_place()) {
        const bool unfinished = code != phases::exit_done && code != phases::exit_mismatch;
        return {unfinished ? remove_unfinished(context) : 0, 0, 0, {}};
    }
    if (!context.storage.makes_files || context.plan.target.keep || context.plan.target.use_existing) {
        return context.root() ? remove_alone(context) : files::Removal{};
    }
    files::Removal removal;
    const ranks::Place& place = context.team.place();
    const int first = place.process * context.tasks.threads;
    const files::Removal own =
        files::remove_files(context.storage.directory, context.manifest, first, first + context.tasks.threads, false);
    context.shared.board->files_removed.fetch_add(own.files + files::remove_items(context.storage.directory,
                                                                                  context.manifest, first,
                                                                                  first + context.tasks.threads));
    const std::uint64_t kept = context.team.maximum(own.left.size());
    const std::string sum = context.team.reduce(
        std::to_string(context.shared.board->files_removed.load()),
        [](const std::string& a, const std::string& b) { return std::to_string(std::stoull(a) + std::stoull(b)); });
    if (context.root()) {
        // With files that nobody could remove the list of them stays, so that `sonde clean` can do it later.
        removal = kept == 0 ? remove_alone(context) : own;
        removal.files = kept == 0 ? removal.files + std::stoull(sum) : std::stoull(sum);
        if (kept > 0) {
            removal.left.push_back("files are left in " + context.storage.directory + ": `sonde clean " +
                                   context.plan.target.path + "` removes them when the storage answers");
        }
    }
    return removal;
}

bool makes_anything(const plan::Plan& plan) {
    return std::any_of(plan.phases.begin(), plan.phases.end(), [](const plan::Phase& phase) {
        return plan::writes(phase.op) || phase.op == plan::Op::mktree || phase.op == plan::Op::create ||
               phase.op == plan::Op::cycle;
    });
}

ordered_json end_line(const phases::Outcome& outcome, const files::Removal& removal, std::int64_t epoch) {
    ordered_json end{{"status", outcome.status()},
                     {"exit_code", outcome.code},
                     {"seconds", static_cast<double>(meters::Clock::monotonic_ns() - epoch) / 1e9}};
    if (!outcome.text.empty()) {
        end["text"] = outcome.text;
    }
    end["files_removed"] = removal.files;
    end["files_left"] = ordered_json::array();
    for (const std::string& left : removal.left) {
        end["files_left"].push_back(records::json_text(left));
    }
    return end;
}

ordered_json failed_end(int code, const std::string& text, std::int64_t epoch) {
    return {{"status", "failed"},
            {"exit_code", code},
            {"seconds", static_cast<double>(meters::Clock::monotonic_ns() - epoch) / 1e9},
            {"text", records::json_text(text)}};
}

void speak(const phases::Outcome& outcome, const files::Removal& removal, const std::string& trouble) {
    std::string line = outcome.code == phases::exit_done ? std::string() : outcome.text;
    const auto add = [&line](const std::string& more) { line += (line.empty() ? "" : "; ") + more; };
    for (std::size_t i = 0; i < std::min<std::size_t>(2, removal.left.size()); ++i) {
        add(removal.left[i]);
    }
    if (removal.left.size() > 2) {
        add("and " + std::to_string(removal.left.size() - 2) + " more such, see the record");
    }
    if (!trouble.empty()) {
        add(trouble);
    }
    if (!line.empty()) {
        records::complain(line);
    }
}

}  // namespace sonde::runs
