// SPDX-License-Identifier: Apache-2.0
// Stages begin at phases in a process of their own.
#include "phases/stages.hpp"

#include <doctest/doctest.h>

using namespace sonde;

TEST_CASE("separate_process_begins_next_stage") {
    plan::Plan plan;
    plan.phases.resize(4);
    plan.phases[1].separate_process = true;
    plan.phases[3].separate_process = true;
    CHECK(phases::number_stages(plan) == std::vector<int>{0, 1, 1, 2});
    CHECK_FALSE(phases::is_last_stage(plan, 0));
    CHECK_FALSE(phases::is_last_stage(plan, 1));
    CHECK(phases::is_last_stage(plan, 2));
    CHECK(phases::is_last_stage(plan, -1));
}
