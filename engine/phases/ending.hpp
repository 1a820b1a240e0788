// SPDX-License-Identifier: Apache-2.0
// How a run ends: what it made is removed, the record gets its last line, the user one sentence.
#pragma once

#include "phases/context.hpp"
#include "phases/removal.hpp"

#include <nlohmann/json.hpp>
#include <string>

namespace sonde::phases {

/// Removes what the run made, all processes together. The root says what is left.
Removal clean_up(Context& context, int code);

/// The part of the removal that is the root's alone, and all of it when the others are gone.
Removal remove_alone(const Context& context);

/// The end line of a run that came to an end, for better or worse. Times in the record are since `epoch`.
nlohmann::ordered_json end_line(const Outcome& outcome, const Removal& removal, std::int64_t epoch);

/// The end line of a run that came to nothing.
nlohmann::ordered_json failed_end(int code, const std::string& text, std::int64_t epoch);

/// The one line for the user, when there is anything to say.
void speak(const Outcome& outcome, const Removal& removal, const std::string& trouble);

}  // namespace sonde::phases
