// SPDX-License-Identifier: Apache-2.0
// The trees of a run: what may be there by rule, what phases have left in them, and which part of one each stream works
// on.
#pragma once

#include "files/task_map.hpp"
#include "patterns/tree.hpp"
#include "plan/plan.hpp"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace sonde::files {

/// What names a tree can hold: enough to tell one that the run made from any other. WrittenGeneration into the manifest
/// before anything is made, whatever the number of items.
struct TreeRule {
    plan::Tree tree;
    plan::TreeNames names;
    bool shared_single = false;  ///< files without the number of a task
    bool created_by_run = true;  ///< false: a directory of this name was there before any run, so nothing in it is ours
    bool was_created_now = true;  ///< not kept in the manifest: this run was the one that made it
    bool operator==(const TreeRule& other) const;
};

/// Items that phases have left in the trees of one top.
struct TreeState {
    std::string top;
    plan::Objects objects = plan::Objects::files;
    std::string phase;                 ///< that made them
    std::uint64_t generation = 0;      ///< of their content
    std::uint64_t write = 0;           ///< bytes in each
    std::uint64_t rotation = 0;        ///< whole renamings since
    bool is_complete = true;           ///< false: a phase was stopped among them, so which are there is not known
    std::vector<std::uint64_t> items;  ///< by task, in the order of creation
};

/// Trees and their items, as the manifest keeps them.
struct Forest {
    std::vector<TreeRule> rules;
    std::vector<TreeState> states;

    const TreeState* find(const plan::Meta& meta) const;
    TreeState* find(const plan::Meta& meta);
    void remove_state(const plan::Meta& meta);
    nlohmann::json to_json() const;
    /// The states alone: what changes from phase to phase.
    nlohmann::json states_to_json() const;
    void load_states(const nlohmann::json& json, int tasks);
    /// Throws nlohmann's errors and std::runtime_error when a hand has changed it to something impossible.
    static Forest from_json(const nlohmann::json& json, int tasks);
};

/// The rules of a plan, each once.
std::vector<TreeRule> list_tree_rules(const plan::Plan& plan);

/// First part of the names of the directories in which a task's items lie: "branch", "branch.<task>", "branch.n<node>".
std::string branch_of_task(const plan::Meta& meta, int task, const TaskMap& tasks);
/// All of them, each once, in the order of the lowest task that has its tree there.
std::vector<std::string> list_branches(const plan::Meta& meta, const TaskMap& tasks);

/// Which directories and items of its trees a rule makes.
class TreeNaming {
 public:
    TreeNaming(const TreeRule& rule, const TaskMap& tasks);
    bool is_top(const std::string& name) const;
    /// The branch whose root directory has this name; empty when there is none.
    std::string branch_of_root(const std::string& name) const;
    /// Number of a subdirectory of `parent` with this name in a tree of `branch`.
    std::optional<std::uint64_t> find_subdirectory(const std::string& branch, std::uint64_t parent,
                                                   const std::string& name) const;
    enum class NameKind { none, file, directory };
    /// Whether an item of this name belongs into directory `parent`.
    NameKind classify_name(std::uint64_t parent, const std::string& name) const;

 private:
    bool is_item(const std::string& prefix, bool shared, std::uint64_t parent, std::string_view name) const;

    TreeRule rule_;
    int tasks_;
    int nodes_;
    patterns::TreeShape shape_;
};

}  // namespace sonde::files
