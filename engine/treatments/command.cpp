// SPDX-License-Identifier: Apache-2.0
// A command of the user's before a phase.
#include "treatments/child_command.hpp"
#include "treatments/kind.hpp"

namespace sonde::treatments {
namespace {

using Outcome = TreatmentResult::Outcome;

std::string missing_command(const plan::Treatment& asked) {
    return asked.command.empty() ? "command is missing: which command to run" : "";
}

TreatmentResult apply_command(const Subject& subject) {
    const CommandResult result = run_shell(subject.asked.command, subject.stop, "SONDE_DIRECTORY=" + subject.directory);
    TreatmentResult told =
        result.ok()
            ? said(Outcome::done, "The command succeeded.")
            : said(Outcome::failed, "The command `" + subject.asked.command + "` failed: " + result.reason() + ".");
    if (result.start_error == 0) {
        told.user_s = result.user_s;
        told.system_s = result.system_s;
    }
    return told;
}

}  // namespace

extern const Kind command_treatment;
const Kind command_treatment{.rule = {.name = "command", .missing = missing_command}, .apply = apply_command};

}  // namespace sonde::treatments
