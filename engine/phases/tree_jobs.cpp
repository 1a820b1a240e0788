// SPDX-License-Identifier: Apache-2.0
// Phases on trees: stream jobs, preparation, and items left for later phases.
#include "phases/tree_jobs.hpp"

#include "backends/backend.hpp"
#include "files/manifest.hpp"
#include "files/run_directories.hpp"
#include "files/trees.hpp"
#include "plan/plan_error.hpp"
#include "workloads/item_replacement.hpp"

#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>

namespace sonde::phases {
namespace {

using plan::Op;
using workloads::TreeJob;
using workloads::TreePart;

/// Selects the items of one task for a phase.
TreePart select_items_of_task(const RunContext& context, const plan::Phase& phase, std::size_t index, int owner,
                              const TreeJob& job) {
    const plan::Meta& meta = *phase.meta;
    TreePart part;
    part.owner = owner;
    part.branch = files::branch_of_task(meta, owner, context.tasks);
    part.item_stem = patterns::make_item_stem(meta, owner);
    part.item_count = job.shape.items();
    if (meta.window) {
        part.item_count = job.shape.copies() * job.shape.item_directories() * meta.window->count;
        part.generation = index + 1;  // only marks the content as known: IOR content identifies itself
    } else if (phase.op == Op::create) {
        part.generation = index + 1;
    } else if (const files::TreeState* state = context.manifest.trees.find(meta)) {
        if (!state->is_complete) {
            throw plan::PlanError("plan: phase \"" + phase.id + "\" needs the items of phase \"" + state->phase +
                                  "\", but a phase between them was stopped among them: give that one no stop rule, or "
                                  "let this one be walk or readdir");
        }
        part.item_count = std::min(part.item_count, state->items[static_cast<std::size_t>(owner)]);
        part.generation = state->write >= meta.read_bytes ? state->generation : 0;
        part.rotation = state->rotation;
    }
    if (phase.stop.items) {
        part.item_count = std::min(part.item_count, *phase.stop.items);
    }
    if (phase.op == Op::rename && part.item_count < 2) {
        part.item_count = 0;  // no items, because there is no name to use
    }
    return part;
}

void add_items(const RunContext& context, const plan::Phase& phase, std::size_t index, int task, TreeJob& job) {
    const plan::Meta& meta = *phase.meta;
    const int all = context.tasks.tasks();
    const bool makes_or_removes = phase.op == Op::create || phase.op == Op::remove_items || phase.op == Op::rename;
    // Shared items are removed once, but any task may create, stat and read them.
    const bool first_only = meta.single_task || (meta.shared_single && phase.op == Op::remove_items);
    if (task >= all || (first_only && task > 0)) {
        return;
    }
    if (meta.single_task && makes_or_removes) {
        for (int owner = 0; owner < all; ++owner) {
            job.parts.push_back(select_items_of_task(context, phase, index, owner, job));
        }
        return;
    }
    job.parts.push_back(
        select_items_of_task(context, phase, index, files::shift_task(phase.shift, task, context.tasks), job));
}

/// Limit of a task from stop.within; no limit without stop.within.
std::uint64_t find_item_limit(const RunContext& context, const plan::Phase& phase, int task) {
    const auto limit = context.operations_done.find(phase.stop.within);
    if (phase.stop.within.empty() || limit == context.operations_done.end()) {
        return ~0ULL;
    }
    return limit->second[static_cast<std::size_t>(task)];
}

/// A cycle reads items of other tasks and creates items for them.
void add_neighbors(const RunContext& context, const plan::Phase& phase, TreeJob& job) {
    for (int task = 0; task < context.tasks.tasks(); ++task) {
        job.branches.push_back(files::branch_of_task(*phase.meta, task, context.tasks));
        job.item_stems.push_back(patterns::make_item_stem(*phase.meta, task));
    }
}

/// Directories of shared trees are created and removed by the first task of the tree, and listed by all tasks.
void add_directories(const RunContext& context, const plan::Phase& phase, int task, TreeJob& job) {
    const plan::Meta& meta = *phase.meta;
    const int all = context.tasks.tasks();
    if (task >= all) {
        return;
    }
    if (phase.op == Op::readdir || meta.single_task) {
        if (meta.single_task && task > 0) {
            return;
        }
        job.branches = files::list_branches(meta, context.tasks);
        job.first_directory = meta.single_task ? 0 : static_cast<std::uint64_t>(task);
        job.directory_step = meta.single_task ? 1 : static_cast<std::uint64_t>(all);
        return;
    }
    const bool is_own_tree = meta.tree.scope == plan::TreeScope::per_task ||
                             (meta.tree.scope == plan::TreeScope::shared && task == 0) ||
                             (meta.tree.scope == plan::TreeScope::per_node && context.tasks.index_on_node(task) == 0);
    if (is_own_tree) {
        plan::Meta effective = meta;
        effective.tree.home_shift = 0;
        job.branches = {files::branch_of_task(effective, task, context.tasks)};
    }
}

/// In a directory that others created, a link could be in the place of a tree, and operations below it would leave the
/// target.
std::string find_link_in_tree(const RunContext& context, const plan::Meta& meta) {
    const patterns::TreeShape shape(meta.tree);
    const files::ConfinedDirectory root = context.open_directory();
    const auto complaint = [](const files::ConfinedDirectory& parent, const std::string& name) {
        struct stat info {};
        return parent.status(name, info) == 0 && !S_ISDIR(info.st_mode)
                   ? parent.path() + "/" + name +
                         " is no directory: Sonde works below no links or files that it finds; choose another "
                         "target.directory"
                   : std::string();
    };
    for (std::uint64_t copy = 0; copy < shape.copies(); ++copy) {
        std::string sentence = complaint(root, shape.top_name(copy));
        const files::ConfinedDirectory top = root.open_subdirectory(shape.top_name(copy));
        for (const std::string& branch : files::list_branches(meta, context.tasks)) {
            sentence = sentence.empty() ? complaint(top, patterns::TreeShape::directory_name(branch, 0)) : sentence;
        }
        if (!sentence.empty()) {
            return sentence;
        }
    }
    return {};
}

bool is_made_before(const plan::Plan& plan, std::size_t index) {
    const plan::Meta& meta = *plan.phases[index].meta;
    return std::any_of(plan.phases.begin(), plan.phases.begin() + static_cast<std::ptrdiff_t>(index),
                       [&meta](const plan::Phase& phase) {
                           return phase.meta && phase.meta->tree.top == meta.tree.top && phase.op == Op::mktree;
                       });
}

/// Modification time of the file that a search names; absent on failure (see errno).
std::optional<std::int64_t> read_modification_time(const RunContext& context, const plan::EntryFilter& find) {
    const std::string& name = find.newer_than_file;
    const std::string path = name[0] == '/' ? name : context.plan.target.path + "/" + name;
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) {
        return std::nullopt;
    }
    return info.st_mtim.tv_sec * std::int64_t{1'000'000'000} + info.st_mtim.tv_nsec;
}

std::string explain_impossible_search(const RunContext& context, const plan::Phase& phase) {
    if (phase.op != Op::walk || !phase.meta->find || phase.meta->find->newer_than_file.empty() ||
        read_modification_time(context, *phase.meta->find)) {
        return {};
    }
    return "phase " + phase.id + ": meta.find.newer_than_file is " + phase.meta->find->newer_than_file +
           ", which cannot be looked at: " + std::strerror(errno);
}

/// Makes a directory of a tree, or finds it. One sentence, empty when all is well.
std::string make_directory(files::LastSubdirectory& parents, const RunContext& context, const std::string& relative) {
    const int failed = parents.make_directory(relative, 0777);
    if (failed == 0) {
        return {};
    }
    const std::string path = context.storage.directory + "/" + relative;
    if (failed != -EEXIST) {
        return "cannot make " + path + ": " + std::strerror(-failed);
    }
    struct stat info {};
    if (parents.status(relative, info) != 0 || !S_ISDIR(info.st_mode)) {
        return path + " is there and is no directory" +
               (S_ISLNK(info.st_mode) ? " but a link, which may lead away from the target" : "") +
               ": choose another meta.tree.top or target.directory";
    }
    return {};
}

}  // namespace

void set_tree_job(const RunContext& context, std::size_t index, int task, workloads::StreamJob& job) {
    const plan::Phase& phase = context.plan.phases[index];
    auto tree = std::make_shared<TreeJob>(phase.meta->tree);
    tree->root = context.storage.directory;
    tree->may_exist = context.plan.target.use_existing;
    if (plan::acts_on_items(phase.op)) {
        add_items(context, phase, index, task, *tree);
        job.file_count =
            tree->item_count() * (phase.op == Op::cycle ? workloads::calls_per_replacement(phase.meta->cycle) : 1);
        job.file_count = std::min(job.file_count, find_item_limit(context, phase, task));
        if (phase.op == Op::cycle) {
            add_neighbors(context, phase, *tree);
        }
    } else if (phase.op == Op::walk) {
        tree->walk = context.shared.walk;
        tree->node = context.tasks.node_of(task);
        tree->nodes = context.tasks.nodes();
        tree->stream_on_node = context.tasks.index_on_node(task);
        tree->run_file = files::manifest_name;
        tree->entry_limit = find_item_limit(context, phase, task);
        if (const auto& find = phase.meta->find) {
            tree->search.emplace(
                *find, find->newer_than_file.empty() ? find->newer_than_ns : read_modification_time(context, *find));
        }
        job.file_count = 0;
    } else {
        add_directories(context, phase, task, *tree);
        job.file_count = tree->stream_directory_count();
    }
    job.verify = (phase.op == Op::read_items || phase.op == Op::cycle) &&
                 (phase.data.verify == plan::Verify::on_read || phase.data.verify == plan::Verify::both);
    if (!context.in_place()) {
        job.root_path = tree->root;
    }
    job.tree = tree;
}

std::string prepare_tree(const RunContext& context, std::size_t index) {
    const plan::Phase& phase = context.plan.phases[index];
    if (std::string complaint = explain_impossible_search(context, phase); !complaint.empty()) {
        return complaint;
    }
    const bool makes = phase.op == Op::mktree || (phase.op == Op::create && !is_made_before(context.plan, index));
    if (!context.is_root() || !backends::find_backend(phase.data.backend)->traits.needs_files) {
        return {};
    }
    const patterns::TreeShape shape(phase.meta->tree);
    std::string complaint = context.plan.target.use_existing ? find_link_in_tree(context, *phase.meta) : "";
    if (!makes) {
        return complaint;
    }
    const files::ConfinedDirectory root = context.open_directory();
    files::LastSubdirectory parents(root);
    for (std::uint64_t copy = 0; complaint.empty() && copy < shape.copies(); ++copy) {
        complaint = make_directory(parents, context, shape.top_name(copy));
        if (phase.op == Op::mktree) {
            continue;
        }
        // A plan without mktree does not time the creation of the tree, so the tree is created here.
        for (const std::string& branch : files::list_branches(*phase.meta, context.tasks)) {
            for (std::uint64_t d = 0; complaint.empty() && d < shape.directories() && !context.stopped(); ++d) {
                std::string relative;
                shape.append_path(relative, branch, copy, d);
                complaint = make_directory(parents, context, relative);
            }
        }
    }
    return complaint;
}

void remove_tree_directories(const RunContext& context, std::size_t index) {
    const plan::Phase& phase = context.plan.phases[index];
    if (!context.is_root() || phase.op != Op::rmtree ||
        !backends::find_backend(phase.data.backend)->traits.needs_files) {
        return;
    }
    const patterns::TreeShape shape(phase.meta->tree);
    const files::ConfinedDirectory root = context.open_directory();
    for (std::uint64_t copy = 0; copy < shape.copies(); ++copy) {
        // Foreign entries keep the directory; the end of the run reports them.
        static_cast<void>(root.remove_directory(shape.top_name(copy)));
    }
}

void update_forest(const plan::Phase& phase, std::size_t index, const files::TaskMap& tasks,
                   const results::Totals& totals, files::Forest& forest) {
    const plan::Meta& meta = *phase.meta;
    if (meta.window) {
        return;  // the window of each phase defines the items
    }
    if (phase.op == Op::rmtree) {
        forest.remove_state(meta);
        return;
    }
    const bool is_complete = totals.planned_operations == totals.file_operations;
    if (phase.op == Op::create) {
        files::TreeState state;
        state.top = meta.tree.top;
        state.objects = meta.objects;
        state.phase = phase.id;
        state.generation = index + 1;
        state.write = meta.write_bytes;
        state.is_complete = is_complete || meta.order == plan::SelectOrder::creation;
        state.items.assign(static_cast<std::size_t>(tasks.all_tasks()), 0);
        if (meta.single_task) {
            const patterns::TreeShape shape(meta.tree);
            state.is_complete = is_complete;
            std::fill_n(state.items.begin(), tasks.tasks(),
                        std::min(shape.items(), phase.stop.items.value_or(shape.items())));
        } else {
            for (const results::TaskRow& row : totals.rows) {
                state.items[static_cast<std::size_t>(row.task)] = row.next_operation;
            }
        }
        forest.remove_state(meta);
        forest.states.push_back(state);
        return;
    }
    files::TreeState* state = forest.find(meta);
    if (state == nullptr) {
        return;
    }
    if (phase.op == Op::remove_items && is_complete && !phase.stop.items) {
        forest.remove_state(meta);
    } else if (phase.op == Op::remove_items) {
        state->is_complete = false;
    } else if (phase.op == Op::rename) {
        state->is_complete = state->is_complete && is_complete && !phase.stop.items;
        ++state->rotation;
    }
}

}  // namespace sonde::phases
