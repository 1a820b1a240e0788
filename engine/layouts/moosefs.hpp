// SPDX-License-Identifier: Apache-2.0
// MooseFS: chunks and their copies as `mfsfileinfo` prints them.
#pragma once

#include "layouts/stripe_layout.hpp"

#include <string_view>

namespace sonde::layouts {

/// Targets are called "10.0.0.7:9422", the address of a chunk server. Any server with a copy of a chunk may serve it.
/// When the text ends within a line, as that of a very long file does, the last chunk and all after it are unknown.
/// Throws std::invalid_argument with one sentence when the text is not a layout.
StripeLayout parse_moosefs_layout(std::string_view text);

}  // namespace sonde::layouts
