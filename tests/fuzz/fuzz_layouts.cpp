// SPDX-License-Identifier: Apache-2.0
// What file systems and their programs print about the layout of a file: any bytes are a layout or refused with one
// sentence. The first byte selects the format, the rest is the text; two texts of one format are separated by a NUL.
#include "layouts/beegfs.hpp"
#include "layouts/ceph_format.hpp"
#include "layouts/ceph_placement.hpp"
#include "layouts/gluster.hpp"
#include "layouts/gpfs.hpp"
#include "layouts/gpfs_disks.hpp"
#include "layouts/lustre.hpp"
#include "layouts/moosefs.hpp"
#include "layouts/stripe_layout.hpp"
#include "records/mounts.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

namespace {

using namespace sonde::layouts;

/// Calls that the engine makes with every layout.
void use(const StripeLayout& layout) {
    for (const std::uint64_t size : {0ULL, 1ULL, 1ULL << 20U, (1ULL << 20U) + 1, ~0ULL}) {
        compute_bytes_by_target(layout, size);
        find_targets_of_byte(layout, size);
    }
    for (const LayoutComponent& component : layout.components) {
        if (pattern_name(component.pattern) == nullptr) {
            std::abort();
        }
    }
}

void read(char format, std::string_view text) {
    const std::size_t nul = std::min(text.find('\0'), text.size());
    const std::string_view first = text.substr(0, nul), second = text.substr(std::min(nul + 1, text.size()));
    switch (format) {
        case 'l':
            return use(parse_lustre_layout(text));
        case 'g':
            parse_gluster_size(text);
            use(parse_gluster_layout(text));
            return use(parse_gluster_layout(text, 1ULL << 26U));
        case 'c':
            use(parse_ceph_layout(text));
            return use(place_ceph_layout(text, 1, CephPlacement("unknown")));
        case 'p': {
            const CephPlacement placement = CephPlacement::from_command_outputs(first, second);
            use(place_ceph_layout("stripe_unit=65536 stripe_count=3 object_size=131072 pool=data", 1, placement));
            CephPlacement::from_json_text(placement.to_json_text());
            return;
        }
        case 'b':
            return use(parse_beegfs_layout(text));
        case 'm':
            return use(parse_moosefs_layout(text));
        case 'd':
            return use(parse_gpfs_layout("storage pool name: data\n", parse_gpfs_disks(first, second)));
        case 'a':
            return use(parse_gpfs_layout(text));
        case 'i':
            sonde::records::find_mount(sonde::records::parse_mounts(text), "/a/b");
            return;
        default:
            return;
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) {
        return 0;
    }
    try {
        read(static_cast<char>(data[0]), {reinterpret_cast<const char*>(data) + 1, size - 1});
    } catch (const std::invalid_argument& error) {
        if (std::string_view(error.what()).empty()) {
            std::abort();
        }
    }
    return 0;
}
