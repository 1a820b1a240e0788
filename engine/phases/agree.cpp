// SPDX-License-Identifier: Apache-2.0
#include "phases/agree.hpp"

#include <cstdio>

namespace sonde::phases {

bool agree(Context& context, const std::string& phase, const std::string& complaint, int code) {
    ranks::Team& team = context.team;
    if (team.all(complaint.empty())) {
        return true;
    }
    // Only leaders' texts travel: the others hand theirs over through the shared error slots.
    ranks::NodeControl& control = team.control();
    if (!complaint.empty() && control.error_count.fetch_add(1) == 0) {
        ranks::ErrorSlot& slot = control.errors[0];
        std::snprintf(slot.text, sizeof slot.text, "%s", complaint.c_str());
        slot.code = code;
        slot.state.store(2);
    }
    const bool whole = team.all(true);
    const ranks::ErrorSlot& first = control.errors[0];
    const std::string joined =
        team.reduce(first.state.load() == 2 ? std::string(first.text) : std::string(),
                    [](const std::string& a, const std::string& b) { return a.empty() ? b : a; });
    if (!context.root()) {
        return false;
    }
    Outcome& outcome = context.at_root.outcome;
    if (!joined.empty()) {
        outcome.set(code, joined);
    } else if (!whole) {
        outcome.set(exit_failed, lost_sentence(context, "before phase " + phase));
    } else {
        outcome.set(code, "phase " + phase + " could not be prepared");
    }
    return false;
}

}  // namespace sonde::phases
