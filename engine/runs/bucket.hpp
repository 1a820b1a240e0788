// SPDX-License-Identifier: Apache-2.0
// A target that is a bucket: its check before a run, and the prefix of the run in it.
#pragma once

#include "phases/context.hpp"

#include <nlohmann/json.hpp>
#include <string>

namespace sonde::runs {

/// Checks that the bucket can be used, and puts the manifest of the run into it; for a later stage, takes over the
/// manifest of the earlier one. Fills context.manifest. Returns the name of the run in the bucket
/// ("s3://bucket/prefix/sonde-ID"). Throws plan::PlanError when there is no such bucket, else EnvironmentError.
std::string open_bucket(phases::RunContext& context, int first_stage);

/// Member `store` of the record's line `run`: service and client library.
nlohmann::ordered_json describe_store(const plan::TargetSettings& target);

/// Member `file_system` of the record's lines `node`, in place of a mounted one.
nlohmann::ordered_json describe_bucket(const plan::TargetSettings& target);

}  // namespace sonde::runs
