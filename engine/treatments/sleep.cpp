// SPDX-License-Identifier: Apache-2.0
// The treatment `sleep`, which is also the template for a new treatment: copy the file, rename it, and add its line to
// treatments.cpp and its name to schema/plan.
#include "treatments/treatment_kind.hpp"

namespace sonde::treatments {
namespace {

using Status = TreatmentResult::Status;

// Required members of the plan; the parser has read all members that treatments can have.
std::string missing_time(const plan::Treatment& treatment) {
    return treatment.time <= 0 ? "time is missing: how long to sleep" : "";
}

// Runs on the leader of each node while all other processes wait. Returns what it did, or the reason of a failure and a
// remedy.
TreatmentResult apply_sleep(const TreatmentRequest& context) {
    const bool is_complete = sleep_until_stopped(static_cast<double>(context.treatment.time) / 1e9, context.stop);
    return is_complete ? make_result(Status::done, "Waited.") : make_result(Status::failed, "Stopped while waiting.");
}

}  // namespace

extern const TreatmentKind sleep_treatment;
const TreatmentKind sleep_treatment{.capability = {.name = "sleep", .explain_missing_member = missing_time},
                                    .apply = apply_sleep};

}  // namespace sonde::treatments
