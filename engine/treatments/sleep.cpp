// SPDX-License-Identifier: Apache-2.0
// Waiting before a phase: the template for a new treatment. Copy it, give it a name, and add its line to
// treatments.cpp; its name goes into schema/plan.
#include "treatments/kind.hpp"

namespace sonde::treatments {
namespace {

using Outcome = TreatmentResult::Outcome;

// What the plan must say: the parser has read all members that treatments can have.
std::string missing_time(const plan::Treatment& asked) {
    return asked.time <= 0 ? "time is missing: how long to sleep" : "";
}

// Runs on the leader of each node while all others wait. It says what it did, or why not and what would help.
TreatmentResult apply_sleep(const Subject& subject) {
    const bool whole = sleep_or_stop(static_cast<double>(subject.asked.time) / 1e9, subject.stop);
    return whole ? said(Outcome::done, "Waited.") : said(Outcome::failed, "Stopped while waiting.");
}

}  // namespace

extern const Kind sleep_treatment;
const Kind sleep_treatment{.rule = {.name = "sleep", .missing = missing_time}, .apply = apply_sleep};

}  // namespace sonde::treatments
