// SPDX-License-Identifier: Apache-2.0
// The table of all options: short and long spelling, directive of -O and scripts, what each does to the settings.
#pragma once

#include "dialects/ior/settings.hpp"

#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace sonde::dialects::ior {

struct IorOption {
    enum class ArgumentCount { flag, value };
    char letter = 0;             ///< 0: none
    std::string_view long_name;  ///< after "--"; empty: none
    std::string_view directive;  ///< in -O and scripts; empty: none
    ArgumentCount argument_count = ArgumentCount::value;
    std::string_view help;  ///< empty: accepted, but not shown
    /// `value` of a flag is its number. Throws plan::PlanError.
    void (*apply)(IorSettings& settings, const std::string& value);
};

std::span<const IorOption> options();

/// Null when there is none.
const IorOption* find_by_letter(char letter);
const IorOption* find_by_long_name(std::string_view word);
const IorOption* find_by_directive(
    std::string_view directive);  ///< any case; back-end options too, with or without "--"

/// Why an option of some IOR is not taken here, in one sentence; empty when it is unknown.
std::string explain_refusal(const std::string& option);

/// The help text, with every option.
std::string help_text();

}  // namespace sonde::dialects::ior
