// SPDX-License-Identifier: Apache-2.0
// BeeGFS: layouts as `beegfs-ctl --getentryinfo` prints them, striping by `beegfs-ctl --setpattern` for a directory and
// by the ioctl that makes a file with hints (beegfs_ioctl.h).
#pragma once

#include "layouts/stripe_layout.hpp"
#include "plan/plan.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace sonde::layouts {

/// Targets are called "4201@oss-4-4-stor2", mirrored ones "buddy group 2". Throws std::invalid_argument with one
/// sentence when the text is not a layout.
StripeLayout parse_beegfs_layout(std::string_view text);

/// The command that stripes a directory, as arguments.
std::vector<std::string> make_beegfs_command(const plan::Striping& requested, const std::string& directory);

}  // namespace sonde::layouts
