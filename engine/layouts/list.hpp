// SPDX-License-Identifier: Apache-2.0
// The kinds of file systems with layouts.
#pragma once

#include "layouts/layout_system.hpp"

#include <span>
#include <string_view>

namespace sonde::layouts {

/// All kinds, in the order in which their attributes are tried.
std::span<const LayoutSystem* const> list_layout_systems();
/// The kind of a type of file system as in /proc/mounts; nullptr: its files have no layouts.
const LayoutSystem* find_layout_system(std::string_view type);

}  // namespace sonde::layouts
