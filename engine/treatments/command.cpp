// SPDX-License-Identifier: Apache-2.0
// The treatment `command`: runs a command of the user before a phase.
#include "treatments/child_command.hpp"
#include "treatments/treatment_kind.hpp"

namespace sonde::treatments {
namespace {

using Status = TreatmentResult::Status;

std::string missing_command(const plan::Treatment& treatment) {
    return treatment.command.empty() ? "command is missing: which command to run" : "";
}

TreatmentResult apply_command(const TreatmentRequest& context) {
    const CommandResult result =
        run_shell(context.treatment.command, context.stop, "SONDE_DIRECTORY=" + context.directory);
    TreatmentResult treatment_result = result.ok()
                                           ? make_result(Status::done, "The command succeeded.")
                                           : make_result(Status::failed, "The command `" + context.treatment.command +
                                                                             "` failed: " + result.reason() + ".");
    if (result.start_error == 0) {
        treatment_result.user_s = result.user_s;
        treatment_result.system_s = result.system_s;
    }
    return treatment_result;
}

}  // namespace

extern const TreatmentKind command_treatment;
const TreatmentKind command_treatment{.capability = {.name = "command", .explain_missing_member = missing_command},
                                      .apply = apply_command};

}  // namespace sonde::treatments
