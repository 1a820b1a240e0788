// SPDX-License-Identifier: Apache-2.0
// From the arguments of an IOR command line, or of a script, to the settings of each test.
#pragma once

#include "dialects/ior/settings.hpp"

#include <string>
#include <vector>

namespace sonde::dialects::ior {

/// The tests in the order they run: one, or as many as the script has. Throws plan::PlanError with one sentence, or
/// Help.
std::vector<IorSettings> parse_arguments(const std::vector<std::string>& arguments);

/// Applies "key=value,key=value", as after -O and in scripts; what follows # is a comment. `where` for messages.
void apply_directives(IorSettings& settings, const std::string& line, const std::string& where);

/// The tests of a script; each begins with what the one before had, the first with `defaults`.
std::vector<IorSettings> read_script(const std::string& path, const IorSettings& defaults);

/// Sees to the rules between options. Throws plan::PlanError; what is only doubtful comes back as sentences.
std::vector<std::string> check_settings(IorSettings& settings, bool in_script);

}  // namespace sonde::dialects::ior
