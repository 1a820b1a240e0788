// SPDX-License-Identifier: Apache-2.0
// What file systems are called in /proc/mounts, and which of them are one family: who tells layouts in which way, and
// who is told stripes, goes by family.
#pragma once

#include <array>
#include <string_view>
#include <utility>

namespace sonde::files {

enum class Family {
    none,
    lustre,
    beegfs,
    ceph,
    gluster,
    gpfs,
    local,         ///< FIEMAP tells places on one block device
    in_user_space  ///< FUSE of a type that is not known: what it tells is not known either
};

inline constexpr std::array<std::pair<std::string_view, Family>, 14> family_names{{
    {"lustre", Family::lustre},
    {"fuse.sonde", Family::lustre},  // `sonde mount` speaks Lustre's attribute
    {"beegfs", Family::beegfs},
    {"fhgfs", Family::beegfs},
    {"ceph", Family::ceph},
    {"fuse.ceph-fuse", Family::ceph},
    {"fuse.ceph", Family::ceph},
    {"glusterfs", Family::gluster},
    {"fuse.glusterfs", Family::gluster},
    {"gpfs", Family::gpfs},
    {"xfs", Family::local},
    {"ext4", Family::local},
    {"ext3", Family::local},
    {"ext2", Family::local},
}};

/// Of a type as it stands in /proc/mounts.
constexpr Family family_of(std::string_view type) {
    for (const auto& [name, family] : family_names) {
        if (name == type) {
            return family;
        }
    }
    return type.starts_with("fuse") ? Family::in_user_space : Family::none;
}

}  // namespace sonde::files
