// SPDX-License-Identifier: Apache-2.0
// Lustre: the layout in the attribute `lustre.lov` in its binary form (plain, with a pool, composite, data on the
// metadata server, several stripes on one target), read and written as lustre_user.h defines it (struct
// lov_user_md_v1, _v3, lov_comp_md_v1): packed, little endian. `sonde mount` uses the same attribute.
#pragma once

#include "layouts/stripe_layout.hpp"
#include "plan/plan.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace sonde::layouts {

/// The layout in the value of `lustre.lov`. Throws std::invalid_argument with one sentence when it is not one: too
/// short, a count that does not fit its length, an unknown magic number.
StripeLayout parse_lustre_layout(std::string_view value);

/// The request as struct lov_user_md_v1, or _v3 with a pool.
std::string encode_lustre_striping(const plan::Striping& requested);

/// "OST000a": the name of the target with this index.
std::string make_lustre_target_name(std::uint32_t index);

}  // namespace sonde::layouts
