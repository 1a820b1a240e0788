// SPDX-License-Identifier: Apache-2.0
// CephFS: the text of the attributes `ceph.file.layout` and `ceph.dir.layout`.
#pragma once

#include "layouts/stripe_layout.hpp"
#include "plan/plan.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace sonde::layouts {

/// Stripe units of `unit` bytes are distributed over `count` objects of `object` bytes each.
struct CephStripes {
    std::uint64_t unit = 0, count = 0, object = 0;
    std::string pool, space;  ///< space: the namespace of the objects in their pool, usually empty
};
/// Throws std::invalid_argument with one sentence when the value is not a layout.
CephStripes parse_ceph_stripes(std::string_view value);

/// The layout in "stripe_unit=4194304 stripe_count=1 object_size=4194304 pool=cephfs_data". A hash, which the attribute
/// does not contain, decides which OSD holds an object, so the pool is the target. Throws as `parse_ceph_stripes`.
StripeLayout parse_ceph_layout(std::string_view value);

/// The request as value of the attribute.
std::string encode_ceph_striping(const plan::Striping& requested);

}  // namespace sonde::layouts
