// SPDX-License-Identifier: Apache-2.0
// Formats of a file's layout: the attribute `lustre.lov` of Lustre (struct lov_user_md of lustre_user.h), and text with
// the terms of `lfs`.
#pragma once

#include "model/machine.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace sonde::simulate {

/// A layout that a user requests. The file system chooses empty members.
struct RequestedLayout {
    std::optional<std::uint64_t> size;
    std::optional<std::uint32_t> count;  ///< ~0: all targets
    std::optional<std::uint32_t> start;  ///< index of a target in the file system

    /// This layout with the empty members of `defaults`.
    ModelLayout apply_to(const ModelLayout& defaults, const SystemModel& site) const;
};

/// lov_user_md_v1 with an object for each stripe. All objects have the id `object`.
std::string format_lov(const ModelLayout& layout, const SystemModel& site, std::uint64_t object);
/// Empty when the value is neither lov_user_md_v1 nor _v3 with a RAID-0 pattern.
std::optional<RequestedLayout> parse_lov(std::string_view value);

/// "stripe_count: 4 stripe_size: 1048576 stripe_offset: 2 targets: 2,3,4,5"
std::string format_layout(const ModelLayout& layout, const SystemModel& site);
/// Parses the same text. `-1` as offset: the file system chooses; as count: all targets. Empty for other text.
std::optional<RequestedLayout> parse_layout(std::string_view text);

}  // namespace sonde::simulate
