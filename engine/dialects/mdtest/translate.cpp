// SPDX-License-Identifier: Apache-2.0
#include "dialects/mdtest/translate.hpp"

#include "plan/meta.hpp"
#include "plan/plan_error.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>

namespace sonde::dialects::mdtest {
namespace {

using nlohmann::ordered_json;

constexpr std::array<const char*, tests> test_names{
    "Directory creation", "Directory stat", "Directory rename", "Directory removal", "File creation",
    "File stat",          "File read",      "File removal",     "Tree creation",     "Tree removal"};
constexpr std::array<const char*, tests> test_ids{"dir-create",  "dir-stat",   "dir-rename", "dir-remove",
                                                  "file-create", "file-stat",  "file-read",  "file-remove",
                                                  "tree-create", "tree-remove"};

const char* packet_kind(const std::string& letter) {
    return letter == "o"   ? "ior_offset"
           : letter == "i" ? "ior_incompressible"
           : letter == "r" ? "ior_random"
                           : "ior_timestamp";
}

const char* choose_backend(const MdtestSettings& s) {
    const bool delays = s.dummy_create_us + s.dummy_close_us + s.dummy_sync_us + s.dummy_transfer_us > 0;
    return s.api != "DUMMY" ? "posix" : delays ? "paced" : "null";
}

/// The delays of DUMMY. Writing is a part of making a file here, and of reading only the transfer takes time.
ordered_json build_paced_member(const MdtestSettings& s) {
    const auto us = [](std::int64_t delay) { return std::to_string(delay) + "us"; };
    return {{"virtual_clock", false},
            {"delays",
             {{"create", us(s.dummy_create_us)},
              {"transfer", us(s.dummy_transfer_us)},
              {"close", us(s.dummy_close_us)},
              {"sync", us(s.dummy_sync_us)},
              {"first_task_only", s.dummy_only_first}}}};
}

/// Phases of one iteration.
class IterationBuilder {
 public:
    IterationBuilder(const MdtestSettings& settings, const TreeCounts& shape, int number, int shift,
                     std::optional<std::uint64_t> expected)
        : settings_(settings), items_(shape.items > 0), number_(number), shift_(shift), expected_(expected) {}

    void add_to(ordered_json& phases) {
        phases_ = &phases;
        if (settings_.create) {
            add(tree_create, "mktree", "directories");
        }
        if (settings_.directories && items_) {
            delay_ = settings_.delay_s;
            add_directory_phases();
        }
        if (settings_.files && items_) {
            delay_ = settings_.delay_s;
            add_file_phases();
        }
        if (settings_.remove) {
            run_after_last(add(tree_remove, "rmtree", "directories"));
        }
    }

    /// The last of mdtest's commands after a phase needs a phase before which it runs.
    void close(ordered_json& phases) {
        phases_ = &phases;
        if (after_last_) {
            ordered_json phase{{"id", "after-last"}, {"op", "stat"}, {"measure", false}, {"stop", {{"items", 1}}}};
            phase["meta"] = {{"tree", {{"top", "test-dir." + std::to_string(number_)}}},
                             {"objects", settings_.files ? "files" : "directories"}};
            run_after_last(phase);
            phases_->push_back(std::move(phase));
        }
    }

 private:
    void run_after_last(ordered_json& phase) {
        if (after_last_) {
            phase["before"].push_back({{"kind", "command"}, {"command", settings_.after_phase}});
            after_last_ = false;
        }
    }

    void add_directory_phases() {
        if (settings_.create) {
            add(dir_create, "create", "directories");
        }
        if (settings_.stat) {
            with_random_order(with_shift(add(dir_stat, "stat", "directories"), 1));
        }
        if (settings_.rename) {
            with_shift(add(dir_rename, "rename", "directories"), 1);
        }
        if (settings_.remove) {
            with_shift(add(dir_remove, "remove", "directories"), 3);
        }
    }

    void add_file_phases() {
        if (settings_.create) {
            if (settings_.single_task) {
                add(file_create, "create", "files", true);
            }
            ordered_json& create = add(file_create, "create", "files");
            create["meta"]["single_task"] = false;  // with -c all open what the first has made, and write
            if (settings_.stonewall_s > 0) {
                create["stop"] = {{"stonewall", std::to_string(settings_.stonewall_s) + "s"}, {"wearout", true}};
            }
            if (settings_.verify_write && settings_.write_bytes > 0 && !settings_.shared_file) {
                create["verify"] = "readback";
            }
        }
        if (settings_.stat) {
            with_stop_rule(with_random_order(with_shift(add(file_stat, "stat", "files"), 1)));
        }
        if (settings_.read) {
            ordered_json& read = with_stop_rule(with_random_order(with_shift(add(file_read, "read", "files"), 2)));
            if (settings_.verify_read && !settings_.shared_file) {
                read["verify"] = "on_read";
            }
        }
        if (settings_.remove) {
            with_stop_rule(with_shift(add(file_remove, "remove", "files"), 3));
        }
    }

    ordered_json& add(MdtestTest test, const char* op, const char* objects, bool first = false) {
        ordered_json phase{{"id", phase_id(number_, test, first)}, {"op", op}};
        phase["meta"] = {{"tree", {{"top", "test-dir." + std::to_string(number_)}}}, {"objects", objects}};
        if (first) {
            phase["meta"]["file"] = {{"write", 0}, {"fsync", false}};
        }
        const bool on_tree = test == tree_create || test == tree_remove;
        if (on_tree) {
            phase["meta"]["sync"] = false;
        } else {
            run_after_last(phase);
            after_last_ = !settings_.after_phase.empty();
            if (!settings_.before_phase.empty()) {
                phase["before"].push_back({{"kind", "command"}, {"command", settings_.before_phase}});
            }
        }
        if (!on_tree && delay_ > 0) {
            phase["before"].push_back({{"kind", "sleep"}, {"time", std::to_string(delay_) + "s"}});
            delay_ = 0;
        }
        if (test >= file_create && test <= file_remove && !settings_.operations_prefix.empty() && !first) {
            phase["operations_file"] = settings_.operations_prefix + "-" + test_name(test);
        }
        phases_->push_back(std::move(phase));
        return phases_->back();
    }
    ordered_json& with_shift(ordered_json& phase, int times) const {
        if (shift_ != 0) {
            phase["shift"] = {{"by", "tasks"}, {"n", times * shift_}};
        }
        return phase;
    }
    ordered_json& with_random_order(ordered_json& phase) const {
        if (settings_.random || settings_.random_seed != 0) {
            phase["meta"]["select"] = {{"order", "permute"}};
        }
        return phase;
    }
    /// Items that an earlier run says it has created, from its status file.
    ordered_json& with_stop_rule(ordered_json& phase) const {
        if (expected_ && !settings_.create) {
            phase["stop"] = {{"items", *expected_}};
        }
        return phase;
    }

    const MdtestSettings& settings_;
    bool items_;  ///< there are any; else only the tree is made and removed
    int number_;
    int shift_;
    std::optional<std::uint64_t> expected_;
    int delay_ = 0;
    bool after_last_ = false;  ///< the command after the last phase has not run yet
    ordered_json* phases_ = nullptr;
};

/// The member "target". Throws plan::PlanError when -d names no directory below the root.
ordered_json make_target(const MdtestSettings& s, bool exists) {
    namespace fs = std::filesystem;
    std::error_code failure;
    fs::path path = fs::weakly_canonical(fs::absolute(s.directory, failure), failure);
    if (!path.has_filename()) {
        path = path.parent_path();
    }
    if (failure || path == path.root_path()) {
        throw plan::PlanError("-d " + s.directory + " must name a directory below the root");
    }
    return {{"path", path.parent_path().string()},
            {"directory", path.filename().string()},
            {"keep", !s.remove},
            {"keep_manifest", s.remove},
            {"use_existing", exists},
            {"min_free", 0}};
}

/// The member "meta" of the plan.
ordered_json make_meta(const MdtestSettings& s, const TreeCounts& shape, int shift, std::int64_t now) {
    ordered_json tree{{"copies", shape.loops},
                      {"depth", s.depth},
                      {"branching", s.branching},
                      {"leaf_only", s.leaf_only},
                      {"items_per_dir", shape.items_per_dir}};
    tree["scope"] = s.unique ? "per_task" : "shared";
    if (s.unique) {
        tree["home_shift"] = shift;
    }
    ordered_json meta{{"backend", choose_backend(s)}, {"tree", tree}};
    if (meta.at("backend") == "paced") {
        meta["paced"] = build_paced_member(s);
    }
    meta["names"] = {{"branch", "mdtest_tree"}, {"file", "file.mdtest"}, {"directory", "dir.mdtest"}};
    meta["file"] = {{"write", s.write_bytes},
                    {"read", s.read_bytes},
                    {"fsync", s.fsync && s.write_bytes > 0},
                    {"create", s.make_node ? "mknod" : "open"},
                    {"shared_single", s.shared_file},
                    {"exclusive", false}};
    if (s.direct && s.write_bytes + s.read_bytes > 0) {
        meta["file"]["direct"] = true;
    }
    meta["lookup"] = {{"stat", "stat"}, {"paths", "full"}};
    meta["select"] = {{"seed", s.random_seed != 0 ? static_cast<std::uint32_t>(s.random_seed) : now}};
    meta["sync"] = s.sync;
    meta["missing"] = "count";
    meta["single_task"] = s.single_task;
    meta["payload"] = {{"kind", packet_kind(s.packets)},
                       {"seed", static_cast<std::uint32_t>(s.signature.value_or(now & INT32_MAX))}};
    return meta;
}

}  // namespace

const char* test_name(MdtestTest test) {
    return test_names.at(static_cast<std::size_t>(test));
}

const char* test_id(MdtestTest test) {
    return test_ids.at(static_cast<std::size_t>(test));
}

std::string phase_id(int iteration, MdtestTest test, bool single_task) {
    return std::to_string(iteration) + "-" + test_ids[static_cast<std::size_t>(test)] +
           (single_task ? "-by-first" : "");
}

std::optional<PhaseName> parse_phase_id(const std::string& id) {
    const std::size_t dash = id.find('-');
    std::string name = dash == std::string::npos ? std::string() : id.substr(dash + 1);
    if (name.ends_with("-by-first")) {
        name.resize(name.size() - std::strlen("-by-first"));
    }
    const auto match = std::find(test_ids.begin(), test_ids.end(), name);
    if (match == test_ids.end()) {
        return std::nullopt;
    }
    return PhaseName{std::stoi(id), static_cast<MdtestTest>(match - test_ids.begin())};
}

TreeCounts count_tree(const MdtestSettings& s, std::optional<std::uint64_t> expected) {
    plan::Tree tree;
    tree.depth = s.depth;
    tree.branching = s.branching;
    tree.leaf_only = s.leaf_only;
    TreeCounts shape;
    shape.directories = plan::count_directories(tree);
    if (shape.directories == 0) {
        throw plan::PlanError("-b " + std::to_string(s.branching) + " -z " + std::to_string(s.depth) +
                              " makes more than " + std::to_string(plan::max_directories) + " directories");
    }
    shape.holders = s.leaf_only ? plan::count_leaf_directories(tree) : shape.directories;
    shape.loops = s.loops();
    shape.items_per_dir = s.items_per_dir > 0 ? s.items_per_dir : s.items / shape.holders;
    if (expected && !s.create && shape.holders == 1 && shape.loops == 1) {
        shape.items_per_dir = std::max(shape.items_per_dir, *expected);
    }
    shape.items = shape.items_per_dir * shape.holders * shape.loops;
    return shape;
}

int compute_rank_shift(const MdtestSettings& s, const SessionSetup& setup) {
    const auto& nodes = setup.node_of;
    const bool block_wise = nodes.size() > 1 && nodes[0] == nodes[1];
    if (s.shift == 0 || setup.nodes == 1 || !block_wise) {
        return s.shift;
    }
    return s.shift * static_cast<int>(std::count(nodes.begin(), nodes.end(), nodes.front()));
}

ordered_json build_plan(const MdtestSettings& s, const SessionSetup& setup, int tasks, const TreeCounts& shape,
                        std::optional<std::uint64_t> expected, bool exists, std::int64_t now) {
    const int shift = tasks > 0 ? compute_rank_shift(s, setup) % tasks : 0;
    ordered_json plan{{"schema", "sonde-plan/2"}, {"id", "mdtest"}, {"title", "mdtest in " + s.directory}};
    plan["target"] = make_target(s, exists);
    if (tasks < setup.tasks) {
        plan["tasks"] = {{"active", tasks}};
    }
    plan["meta"] = make_meta(s, shape, shift, now);
    plan["phases"] = ordered_json::array();
    for (int number = 0; number < s.iterations; ++number) {
        IterationBuilder iteration(s, shape, number, shift, expected);
        iteration.add_to(plan["phases"]);
        iteration.close(plan["phases"]);
    }
    return plan;
}

}  // namespace sonde::dialects::mdtest
