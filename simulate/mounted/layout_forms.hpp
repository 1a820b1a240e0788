// SPDX-License-Identifier: Apache-2.0
// How the layout of a file is written: as Lustre's programs exchange it in the attribute `lustre.lov` (struct
// lov_user_md of lustre_user.h), and as text in the words of `lfs`.
#pragma once

#include "model/machine.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace sonde::simulate {

/// What somebody wants; absent members are left to the file system.
struct WantedLayout {
    std::optional<std::uint64_t> size;
    std::optional<std::uint32_t> count;  ///< ~0: all targets
    std::optional<std::uint32_t> start;  ///< index of a target in the file system

    /// The rest from `usual`; all that is said holds.
    Layout over(const Layout& usual, const SiteModel& site) const;
};

/// lov_user_md_v1 with an object for each stripe; `object` becomes the number of the objects.
std::string lov_of(const Layout& layout, const SiteModel& site, std::uint64_t object);
/// Absent when it is neither lov_user_md_v1 nor _v3 of a RAID-0 pattern.
std::optional<WantedLayout> from_lov(std::string_view value);

/// "stripe_count: 4 stripe_size: 1048576 stripe_offset: 2 targets: 2,3,4,5"
std::string text_of(const Layout& layout, const SiteModel& site);
/// From the same words; `-1` leaves an offset to the file system and means all targets as a count. Absent when it is
/// nothing like that.
std::optional<WantedLayout> from_text(std::string_view text);

}  // namespace sonde::simulate
