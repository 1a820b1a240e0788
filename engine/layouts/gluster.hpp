// SPDX-License-Identifier: Apache-2.0
// Gluster: the bricks of a file, as the attribute `trusted.glusterfs.pathinfo` names them.
#pragma once

#include "layouts/stripe_layout.hpp"

#include <cstdint>
#include <string_view>

namespace sonde::layouts {

/// The whole file lies on each brick of a replica. On a volume that cuts files into shards of `shard_bytes` (0: it does
/// not) these are the bricks of the first shard, and those of the others are unknown. Throws std::invalid_argument with
/// one sentence when the value is not a layout.
StripeLayout parse_gluster_layout(std::string_view value, std::uint64_t shard_bytes = 0);
/// Bytes of "64MB" (2^26) or "4194304"; 0 when it is not a size.
std::uint64_t parse_gluster_size(std::string_view text);

}  // namespace sonde::layouts
