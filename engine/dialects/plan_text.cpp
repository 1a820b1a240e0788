// SPDX-License-Identifier: Apache-2.0
#include "dialects/plan_text.hpp"

#include "plan/json_io.hpp"
#include "plan/plan_error.hpp"

namespace sonde::dialects {

std::string to_plan_text(const nlohmann::ordered_json& plan) {
    try {
        return plan::serialize_json(plan, plan::JsonEncoding::strict_utf8);
    } catch (const nlohmann::ordered_json::type_error&) {
        throw plan::PlanError("a path or name has bytes that are not UTF-8, which a plan cannot hold: rename it");
    }
}

}  // namespace sonde::dialects
