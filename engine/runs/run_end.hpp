// SPDX-License-Identifier: Apache-2.0
// The end of a run: removes its files, writes the last line of the record, and prints one sentence.
#pragma once

#include "files/removal.hpp"
#include "phases/context.hpp"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace sonde::runs {

/// Removes the files of the run, all processes together. Returns at the root what could not be removed.
files::Removal remove_run_files(phases::RunContext& context, int code);

/// Removes files and directories without other processes: the root's part of the removal, or all of it when the team is
/// broken.
files::Removal remove_without_team(const phases::RunContext& context);

/// The `end` line of a run that executed phases, `elapsed_ns` after time 0 of the record. Without `removal` it has no
/// counts of files.
nlohmann::ordered_json end_line(const phases::Outcome& outcome, const std::optional<files::Removal>& removal,
                                std::int64_t elapsed_ns);

/// The `end` line of a run that failed before its first phase or by an exception.
nlohmann::ordered_json failed_end_line(int code, const std::string& text, std::int64_t elapsed_ns);

/// Prints one line on standard error when the run failed or left files.
void print_outcome(const phases::Outcome& outcome, const files::Removal& removal, const std::string& trouble);

/// A finding about messages that did not come from this run; empty when there were none.
std::optional<nlohmann::ordered_json> rejected_messages_finding(const ranks::Team::RejectedMessages& rejected);

/// Whether the plan creates files; false when it only reads, renames or removes existing ones.
bool creates_files(const plan::Plan& plan);

}  // namespace sonde::runs
