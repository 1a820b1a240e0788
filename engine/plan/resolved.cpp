// SPDX-License-Identifier: Apache-2.0
#include "plan/resolved.hpp"

#include "plan/declare_plan.hpp"
#include "plan/table_writer.hpp"

namespace sonde::plan {

ordered_json resolve_plan(Plan plan) {
    return resolve_members([&plan](Visitor& visitor) { describe_plan(visitor, plan, {}); });
}

}  // namespace sonde::plan
