// SPDX-License-Identifier: Apache-2.0
#include "phases/collectives.hpp"

#include "plan/json_io.hpp"

#include <cstdio>

namespace sonde::phases {

using nlohmann::json;

json gather_list(ranks::Team& team, const json& own_list) {
    const std::string joined =
        team.reduce_text(plan::serialize_json(own_list), [](const std::string& a, const std::string& b) {
            json list = plan::parse_json(a);
            const json more = plan::parse_json(b);
            list.insert(list.end(), more.begin(), more.end());
            return plan::serialize_json(list, plan::JsonEncoding::strict_utf8);
        });
    return team.location().is_root() ? plan::parse_json(joined) : json::array();
}

bool no_process_has_problem(RunContext& context, const std::string& phase, const std::string& complaint, int code) {
    ranks::Team& team = context.team;
    if (team.all_true(complaint.empty())) {
        return true;
    }
    // reduce_text() sends texts of leaders only; other processes use the shared error slots.
    ranks::NodeControl& control = team.control();
    if (!complaint.empty() && control.error_count.fetch_add(1) == 0) {
        ranks::ErrorSlot& slot = control.errors[0];
        std::snprintf(slot.text, sizeof slot.text, "%s", complaint.c_str());
        slot.code = code;
        slot.state.store(2);
    }
    const bool team_is_complete = team.all_true(true);
    const ranks::ErrorSlot& first = control.errors[0];
    const std::string joined =
        team.reduce_text(first.state.load() == 2 ? std::string(first.text) : std::string(),
                         [](const std::string& a, const std::string& b) { return a.empty() ? b : a; });
    if (!context.is_root()) {
        return false;
    }
    Outcome& outcome = context.root_state.outcome;
    if (!joined.empty()) {
        outcome.set(code, joined);
    } else if (!team_is_complete) {
        outcome.set(exit_failed, describe_lost_process(context, "before phase " + phase));
    } else {
        outcome.set(code, "phase " + phase + " could not be prepared");
    }
    return false;
}

}  // namespace sonde::phases
