// SPDX-License-Identifier: Apache-2.0
// How a run ends: what it made is removed, the record gets its last line, the user one sentence.
#pragma once

#include "files/removal.hpp"
#include "phases/context.hpp"

#include <nlohmann/json.hpp>
#include <string>

namespace sonde::runs {

/// Removes what the run made, all processes together. The root says what is left.
files::Removal clean_up(phases::Context& context, int code);

/// The part of the removal that is the root's alone, and all of it when the others are gone.
files::Removal remove_alone(const phases::Context& context);

/// The end line of a run that came to an end, for better or worse. Times in the record are since `epoch`.
nlohmann::ordered_json end_line(const phases::Outcome& outcome, const files::Removal& removal, std::int64_t epoch);

/// The end line of a run that came to nothing.
nlohmann::ordered_json failed_end(int code, const std::string& text, std::int64_t epoch);

/// The one line for the user, when there is anything to say.
void speak(const phases::Outcome& outcome, const files::Removal& removal, const std::string& trouble);

/// False when the plan only looks at, reads, renames or removes what others have made.
bool makes_anything(const plan::Plan& plan);

}  // namespace sonde::runs
