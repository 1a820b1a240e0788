// SPDX-License-Identifier: Apache-2.0
// CephFS: layouts from attributes, with the OSDs of CephPlacement where they are known.
#include "layouts/ceph_format.hpp"
#include "layouts/ceph_placement.hpp"
#include "layouts/layout_system.hpp"

#include <sys/stat.h>
#include <sys/xattr.h>
#include <cerrno>

namespace sonde::layouts {
namespace {

constexpr const char* file_attribute = "ceph.file.layout";
constexpr const char* directory_attribute = "ceph.dir.layout";

void check_ceph(const plan::Striping& requested) {
    if (requested.start) {
        throw_invalid_striping("target.striping.start: CephFS places objects by a hash; leave it out");
    }
    if (requested.count && *requested.count < 0) {
        throw_invalid_striping("target.striping.count is -1, but CephFS has no word for all targets: say how many");
    }
}

int set_ceph_striping(int descriptor, const plan::Striping& requested, const char* attribute) {
    const std::string encoded = encode_ceph_striping(requested);
    return ::fsetxattr(descriptor, attribute, encoded.data(), encoded.size(), 0) == 0 ? 0 : errno;
}

int stripe_ceph_directory(const plan::Striping& requested, const files::ConfinedDirectory& directory) {
    return directory ? set_ceph_striping(directory.descriptor(), requested, directory_attribute) : directory.error();
}

int make_ceph_file(const plan::Striping& requested, const files::ConfinedDirectory& parent, const std::string& name) {
    const auto set = [&requested](int descriptor) { return set_ceph_striping(descriptor, requested, file_attribute); };
    return make_file_and_stripe(parent, name, 0, set);
}

std::optional<StripeLayout> read_ceph_attribute(const std::string& path, const CephPlacement* placement) {
    const auto value = read_extended_attribute(path, file_attribute);
    if (!value) {
        return std::nullopt;
    }
    struct stat status {};
    const bool has_placement = placement != nullptr && ::stat(path.c_str(), &status) == 0;
    return has_placement ? place_ceph_layout(*value, status.st_ino, *placement) : parse_ceph_layout(*value);
}

MissingLayout explain_missing_ceph_layout(const std::string& path) {
    return explain_missing_attribute(path, file_attribute);
}

constexpr StripingSetter ceph_striping{[](const plan::Striping& requested, bool) { check_ceph(requested); },
                                       stripe_ceph_directory, make_ceph_file};

}  // namespace

extern const LayoutSystem ceph_system;
const LayoutSystem ceph_system{
    .types = {"ceph", "fuse.ceph-fuse", "fuse.ceph"},
    .max_queries = 1024,
    .read_attribute = read_ceph_attribute,
    .query = nullptr,
    .explain_missing = explain_missing_ceph_layout,
    .striping = &ceph_striping,
    .readable_while_timed = true,
    .needs_placement = true,
};

}  // namespace sonde::layouts
