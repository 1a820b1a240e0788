// SPDX-License-Identifier: Apache-2.0
#include "phases/phase_line.hpp"

namespace sonde::phases {

nlohmann::ordered_json with_phase_members(const plan::Phase& phase, std::size_t index,
                                          const nlohmann::ordered_json& line) {
    nlohmann::ordered_json members{{"phase", phase.id}, {"index", index}, {"op", plan::text(phase.op)}};
    members.update(line);
    return members;
}

}  // namespace sonde::phases
