// SPDX-License-Identifier: Apache-2.0
// From JSON text to a Plan, and what is wrong with it in one sentence.
#pragma once

#include "plan/offer.hpp"
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
/// members, types, ranges, the rules between members (check.hpp), and whether there is what it names. Throws PlanError.
Plan parse_plan(std::string_view json_text, const Offer& offer);

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
