// SPDX-License-Identifier: Apache-2.0
#include "phases/stages.hpp"

namespace sonde::phases {

std::vector<int> number_stages(const plan::Plan& plan) {
    std::vector<int> stages;
    int stage = 0;
    for (const plan::Phase& phase : plan.phases) {
        stage += phase.separate_process ? 1 : 0;
        stages.push_back(stage);
    }
    return stages;
}

bool is_last_stage(const plan::Plan& plan, int stage) {
    return stage < 0 || stage == number_stages(plan).back();
}

}  // namespace sonde::phases
