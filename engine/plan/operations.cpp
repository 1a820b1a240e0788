// SPDX-License-Identifier: Apache-2.0
#include "plan/operations.hpp"

namespace sonde::plan {
namespace {

constexpr bool are_rows_ordered() {
    for (std::size_t i = 0; i < operations.size(); ++i) {
        if (static_cast<std::size_t>(operations[i].op) != i) {
            return false;
        }
    }
    return operations.back().op == Op::rmtree;
}
static_assert(are_rows_ordered(), "a row for each operation, in the order of Op, and none after the last");

}  // namespace

std::vector<std::string_view> list_operation_names(bool tree) {
    std::vector<std::string_view> names;
    for (const OperationInfo& row : operations) {
        if (acts_on_tree(row.op) == tree) {
            names.emplace_back(row.name);
        }
    }
    return names;
}

std::optional<Op> find_operation(std::string_view name, bool tree) {
    for (const OperationInfo& row : operations) {
        if (acts_on_tree(row.op) == tree && name == row.name) {
            return row.op;
        }
    }
    return std::nullopt;
}

}  // namespace sonde::plan
