// SPDX-License-Identifier: Apache-2.0
// Declares the members of an amount, and the kind of its values.
#pragma once

#include "plan/declaration.hpp"
#include "plan/plan.hpp"

namespace sonde::plan {

void describe(Visitor& visitor, Amount& amount);

/// A number of bytes, or a table with a fraction of node memory.
struct AmountKind {
    static Amount read(const Reader& in, const char* key);
    static ordered_json resolve(const Amount& amount);
    static ordered_json json_schema() { return {{"$ref", "#/$defs/amount"}}; }
};

}  // namespace sonde::plan
