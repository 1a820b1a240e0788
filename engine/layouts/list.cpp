// SPDX-License-Identifier: Apache-2.0
// The one list of file systems with layouts. A new one is one file and one line in each of the two groups here.
#include "layouts/list.hpp"

#include <algorithm>

namespace sonde::layouts {

extern const LayoutSystem lustre_system;
extern const LayoutSystem ceph_system;
extern const LayoutSystem gluster_system;
extern const LayoutSystem beegfs_system;
extern const LayoutSystem gpfs_system;
extern const LayoutSystem moosefs_system;
extern const LayoutSystem local_system;

std::span<const LayoutSystem* const> list_layout_systems() {
    static const LayoutSystem* const all[] = {&lustre_system, &ceph_system,    &gluster_system, &beegfs_system,
                                              &gpfs_system,   &moosefs_system, &local_system};
    return all;
}

const LayoutSystem* find_layout_system(std::string_view type) {
    const LayoutSystem* other_fuse = nullptr;
    for (const LayoutSystem* system : list_layout_systems()) {
        if (!type.empty() && std::find(system->types.begin(), system->types.end(), type) != system->types.end()) {
            return system;
        }
        if (system->is_any_other_fuse_type && type.starts_with("fuse")) {
            other_fuse = system;
        }
    }
    return other_fuse;
}

}  // namespace sonde::layouts
