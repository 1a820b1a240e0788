// SPDX-License-Identifier: Apache-2.0
// GPFS: the storage pool of a file, as `mmlsattr -L` prints it.
#pragma once

#include "layouts/gpfs_disks.hpp"
#include "layouts/stripe_layout.hpp"

#include <string_view>

namespace sonde::layouts {

/// GPFS spreads each file over the disks of its storage pool, in an order that it does not reveal: the pool is the
/// target, with its disks as members where they are known. A file of two replicas lies in the pool twice. Throws
/// std::invalid_argument with one sentence when the text is not a layout.
StripeLayout parse_gpfs_layout(std::string_view text, const GpfsDisks& disks = {});

}  // namespace sonde::layouts
