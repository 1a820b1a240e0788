// SPDX-License-Identifier: Apache-2.0
// From JSON text to a Plan, and what is wrong with it in one sentence.
#pragma once

#include "plan/plan.hpp"

#include <stdexcept>
#include <string>
#include <string_view>

namespace sonde::plan {

/// A plan that cannot be run as written. what() names the place ("phases[1].stop.time"), what was found and what would
/// be right. Exit code 2.
struct PlanError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// For rules between members: throws "plan: <where> <complaint>".
[[noreturn]] void refuse(const std::string& where, const std::string& complaint);

/// Reads and checks a plan (schema/plan/plan.schema.json). Everything that does not need the machine is checked here:
/// members, types, ranges and the rules between members (check.cpp).
Plan parse_plan(std::string_view json_text);

/// The rules between members; called by parse_plan.
void check_plan(const Plan& plan);

/// True when `tasks` tasks with this many segments stay inside the largest file (4 EiB). Called by parse_plan where the
/// plan says how many segments; elsewhere when that is known.
bool fits_in_file(const Data& data, std::uint64_t segments, std::uint64_t tasks);

/// The name of an enumerator as in the plan, for records and messages.
const char* text(Op op);
const char* text(Mapping mapping);
const char* text(Order order);

bool writes(Op op);    ///< write, rewrite, mixed, duplex
bool reads(Op op);     ///< read, reread, read_only, mixed, duplex
bool on_files(Op op);  ///< stat, remove: one operation a file, by name
bool on_tree(Op op);   ///< from mktree on: names in a tree
bool on_items(Op op);  ///< of those: one operation an item
/// As in the plan: "stat" for Op::stat_items; null when it is none on a tree.
const char* tree_op_text(Op op);
const char* text(TreeScope scope);

}  // namespace sonde::plan
