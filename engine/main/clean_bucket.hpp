// SPDX-License-Identifier: Apache-2.0
// `clean` of a bucket: removes what killed runs left below a prefix.
#pragma once

#include "files/manifest.hpp"
#include "files/removal_steps.hpp"
#include "main/commands.hpp"

#include <nlohmann/json.hpp>
#include <string>

namespace sonde {

/// One entry per run that was found below the prefix, as in the report on directories, appended to `report`. Returns
/// the exit code. The service is that of the environment (AWS_ENDPOINT_URL, AWS_REGION, AWS_CA_BUNDLE).
int clean_bucket(const CleanArguments& arguments, nlohmann::ordered_json& report);

/// Adds what was removed, and what could not be, to the entry of a run. Returns whether nothing remains.
bool report_removal(const files::Removal& removal, nlohmann::ordered_json& entry);

/// Why a run must not be removed: it is active, or its state is unknown. Empty when its process has ended.
std::string explain_active_run(const files::Manifest& manifest, bool elsewhere);

}  // namespace sonde
