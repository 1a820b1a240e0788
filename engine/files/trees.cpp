// SPDX-License-Identifier: Apache-2.0
#include "files/trees.hpp"

#include <algorithm>
#include <stdexcept>
#include <string_view>

namespace sonde::files {

using nlohmann::json;
using plan::TreeScope;

bool TreeRule::operator==(const TreeRule& other) const {
    const auto key = [](const TreeRule& rule) {
        const plan::Tree& t = rule.tree;
        return std::tie(t.top, t.copies, t.depth, t.branching, t.leaf_only, t.items_per_dir, t.scope, t.home_shift,
                        rule.names.branch, rule.names.file, rule.names.directory, rule.shared_single);
    };
    return key(*this) == key(other);
}

const TreeState* Forest::find(const plan::Meta& meta) const {
    const auto match = std::find_if(states.begin(), states.end(), [&meta](const TreeState& state) {
        return state.top == meta.tree.top && state.objects == meta.objects;
    });
    return match == states.end() ? nullptr : &*match;
}

TreeState* Forest::find(const plan::Meta& meta) {
    return const_cast<TreeState*>(std::as_const(*this).find(meta));
}

void Forest::remove_state(const plan::Meta& meta) {
    std::erase_if(states, [&meta](const TreeState& state) {
        return state.top == meta.tree.top && state.objects == meta.objects;
    });
}

json Forest::to_json() const {
    json out{{"rules", json::array()}, {"states", states_to_json()}};
    for (const TreeRule& rule : rules) {
        const plan::Tree& t = rule.tree;
        out["rules"].push_back({{"top", t.top},
                                {"copies", t.copies},
                                {"depth", t.depth},
                                {"branching", t.branching},
                                {"leaf_only", t.leaf_only},
                                {"items_per_dir", t.items_per_dir},
                                {"scope", static_cast<int>(t.scope)},
                                {"home_shift", t.home_shift},
                                {"branch", rule.names.branch},
                                {"file", rule.names.file},
                                {"directory", rule.names.directory},
                                {"shared_single", rule.shared_single},
                                {"created_by_run", rule.created_by_run}});
    }
    return out;
}

json Forest::states_to_json() const {
    json out = json::array();
    for (const TreeState& s : states) {
        out.push_back({{"top", s.top},
                       {"objects", static_cast<int>(s.objects)},
                       {"phase", s.phase},
                       {"generation", s.generation},
                       {"write", s.write},
                       {"rotation", s.rotation},
                       {"complete", s.is_complete},
                       {"items", s.items}});
    }
    return out;
}

namespace {

bool is_plain_name(const std::string& name) {
    return !name.empty() && name.size() <= 128 && name[0] != '.' && name.find('/') == std::string::npos &&
           name.find('\0') == std::string::npos;
}

/// Returns whether the engine can have written the rule; an edited manifest may contain others.
bool is_plausible_rule(const TreeRule& rule) {
    const plan::Tree& t = rule.tree;
    return is_plain_name(t.top) && is_plain_name(rule.names.branch) && is_plain_name(rule.names.file) &&
           is_plain_name(rule.names.directory) && t.copies > 0 && t.copies <= 1'000'000 && t.depth >= 0 &&
           t.depth <= 100'000 && t.branching > 0 && plan::count_directories(t) > 0 && static_cast<int>(t.scope) >= 0 &&
           static_cast<int>(t.scope) <= 2;
}

}  // namespace

Forest Forest::from_json(const json& in, int tasks) {
    Forest forest;
    for (const json& r : in.at("rules")) {
        TreeRule rule;
        rule.tree.top = r.at("top");
        rule.tree.copies = r.at("copies");
        rule.tree.depth = r.at("depth");
        rule.tree.branching = r.at("branching");
        rule.tree.leaf_only = r.at("leaf_only");
        rule.tree.items_per_dir = r.at("items_per_dir");
        rule.tree.scope = static_cast<TreeScope>(r.at("scope").get<int>());
        rule.tree.home_shift = r.at("home_shift");
        rule.names = {r.at("branch"), r.at("file"), r.at("directory")};
        rule.shared_single = r.at("shared_single");
        rule.created_by_run = r.at("created_by_run");
        if (!is_plausible_rule(rule)) {
            throw std::runtime_error("impossible values");
        }
        forest.rules.push_back(rule);
    }
    forest.load_states(in.at("states"), tasks);
    return forest;
}

void Forest::load_states(const json& in, int tasks) {
    states.clear();
    for (const json& s : in) {
        TreeState state;
        state.top = s.at("top");
        state.objects = s.at("objects") == 0 ? plan::Objects::files : plan::Objects::directories;
        state.phase = s.at("phase");
        state.generation = s.at("generation");
        state.write = s.at("write");
        state.rotation = s.at("rotation");
        state.is_complete = s.at("complete");
        state.items = s.at("items").get<std::vector<std::uint64_t>>();
        if (state.items.size() != static_cast<std::size_t>(tasks)) {
            throw std::runtime_error("impossible values");
        }
        states.push_back(state);
    }
}

std::vector<TreeRule> list_tree_rules(const plan::Plan& plan) {
    std::vector<TreeRule> rules;
    for (const plan::Phase& phase : plan.phases) {
        if (!phase.meta) {
            continue;
        }
        const TreeRule rule{phase.meta->tree, phase.meta->names, phase.meta->shared_single, true};
        if (std::find(rules.begin(), rules.end(), rule) == rules.end()) {
            rules.push_back(rule);
        }
    }
    return rules;
}

std::string branch_of_task(const plan::Meta& meta, int task, const TaskMap& tasks) {
    switch (meta.tree.scope) {
        case TreeScope::shared:
            break;
        case TreeScope::per_task: {
            const int all = tasks.tasks();
            return meta.names.branch + "." + std::to_string(((task + meta.tree.home_shift) % all + all) % all);
        }
        case TreeScope::per_node:
            return meta.names.branch + ".n" + std::to_string(tasks.node_of(task));
    }
    return meta.names.branch;
}

std::vector<std::string> list_branches(const plan::Meta& meta, const TaskMap& tasks) {
    plan::Meta unshifted = meta;
    unshifted.tree.home_shift = 0;
    std::vector<std::string> list;
    for (int task = 0; task < tasks.tasks(); ++task) {
        const bool first = meta.tree.scope == TreeScope::per_task || task == 0 ||
                           (meta.tree.scope == TreeScope::per_node && tasks.index_on_node(task) == 0);
        if (first) {
            list.push_back(branch_of_task(unshifted, task, tasks));
        }
    }
    return list;
}

TreeNaming::TreeNaming(const TreeRule& rule, const TaskMap& tasks)
    : rule_(rule), tasks_(tasks.all_tasks()), nodes_(tasks.nodes()), shape_(rule.tree) {
}

bool TreeNaming::is_top(const std::string& name) const {
    return shape_.copy_of(name).has_value();
}

std::string TreeNaming::branch_of_root(const std::string& name) const {
    std::string_view remainder = name;
    if (!remainder.ends_with(".0") || !remainder.starts_with(rule_.names.branch)) {
        return {};
    }
    remainder.remove_suffix(2);
    const std::string branch(remainder);
    remainder.remove_prefix(rule_.names.branch.size());
    if (rule_.tree.scope == TreeScope::shared) {
        return remainder.empty() ? branch : std::string();
    }
    const std::string_view mark = rule_.tree.scope == TreeScope::per_task ? "." : ".n";
    if (!remainder.starts_with(mark)) {
        return {};
    }
    const auto number = patterns::parse_decimal(remainder.substr(mark.size()));
    const int most = rule_.tree.scope == TreeScope::per_task ? tasks_ : nodes_;
    return number && *number < static_cast<std::uint64_t>(most) ? branch : std::string();
}

std::optional<std::uint64_t> TreeNaming::find_subdirectory(const std::string& branch, std::uint64_t parent,
                                                           const std::string& name) const {
    if (!name.starts_with(branch + ".")) {
        return std::nullopt;
    }
    const auto number = patterns::parse_decimal(std::string_view(name).substr(branch.size() + 1));
    return number && shape_.is_child(parent, *number) ? number : std::nullopt;
}

bool TreeNaming::is_item(const std::string& prefix, bool shared, std::uint64_t parent, std::string_view name) const {
    if (!name.starts_with(prefix + ".")) {
        return false;
    }
    name.remove_prefix(prefix.size() + 1);
    if (name.ends_with("-XX")) {  // put aside by a rename that was stopped
        name.remove_suffix(3);
    }
    const std::size_t dot = name.find('.');
    if (dot == std::string_view::npos || shape_.items_per_dir() == 0) {
        return false;
    }
    const std::string_view whose = name.substr(0, dot);
    const auto task = patterns::parse_decimal(whose);
    const bool is_valid_owner = shared ? whose == "shared" : task && *task < static_cast<std::uint64_t>(tasks_);
    const auto number = patterns::parse_decimal(name.substr(dot + 1));
    return is_valid_owner && number && *number / shape_.items_per_dir() == parent && shape_.is_item_directory(parent);
}

TreeNaming::NameKind TreeNaming::classify_name(std::uint64_t parent, const std::string& name) const {
    if (is_item(rule_.names.file, rule_.shared_single, parent, name)) {
        return NameKind::file;
    }
    return is_item(rule_.names.directory, false, parent, name) ? NameKind::directory : NameKind::none;
}

}  // namespace sonde::files
