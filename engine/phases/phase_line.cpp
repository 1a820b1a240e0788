// SPDX-License-Identifier: Apache-2.0
#include "phases/phase_line.hpp"

namespace sonde::phases {

nlohmann::ordered_json of_phase(const plan::Phase& phase, std::size_t index, const nlohmann::ordered_json& line) {
    nlohmann::ordered_json whole{{"phase", phase.id}, {"index", index}, {"op", plan::text(phase.op)}};
    whole.update(line);
    return whole;
}

}  // namespace sonde::phases
