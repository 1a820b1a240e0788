// SPDX-License-Identifier: Apache-2.0
// A block device as the target: who allows it, whether it is free, and whether the plan fits.
#pragma once

#include "phases/context.hpp"

#include <nlohmann/json.hpp>
#include <string>

namespace sonde::runs {

/// Throws plan::PlanError when the options --allow-device and --destroy do not go with the plan's target.
void check_device_options(const plan::Plan& plan, const phases::RunOptions& options);

/// Opens the plan's block device for reading and checks that the user allows the run and that the plan fits. A plan
/// that writes needs a device that is free, and without --destroy one on which libblkid recognizes nothing; it is then
/// claimed until the run ends. Sets storage.device. Throws plan::PlanError and EnvironmentError.
void claim_device(phases::RunContext& context);

/// The member `file_system` of a node, for the block device at `path`.
nlohmann::ordered_json describe_device_target(const std::string& path);

}  // namespace sonde::runs
