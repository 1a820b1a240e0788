// SPDX-License-Identifier: Apache-2.0
// Layouts that are told in words: the attribute `ceph.file.layout`, `beegfs-ctl --getentryinfo`, `mmlsattr -L` of GPFS,
// `mfsfileinfo` of MooseFS. Knows forms only; `layout_source` asks.
#pragma once

#include "files/gpfs_disks.hpp"
#include "files/stripe_layout.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace sonde::files {

/// What `ceph.file.layout` says: blocks of `unit` bytes go round `count` objects of `object` bytes each.
struct CephStripes {
    std::uint64_t unit = 0, count = 0, object = 0;
    std::string pool, space;  ///< space: the namespace of the objects in their pool, mostly empty
};
CephStripes ceph_stripes(std::string_view value);

/// "stripe_unit=4194304 stripe_count=1 object_size=4194304 pool=cephfs_data". Which OSD holds an object is decided by a
/// hash that the attribute does not tell, so the pool stands as the target. Throws std::invalid_argument with one
/// sentence, as all here do, when it is nothing like that.
StripeLayout parse_ceph_layout(std::string_view value);

/// Targets are called "4201@oss-4-4-stor2", mirrored ones "buddy group 2".
StripeLayout parse_beegfs_layout(std::string_view text);

/// The chunks of MooseFS and who has a copy of each, as `mfsfileinfo` prints them: targets are called
/// "10.0.0.7:9422", the address of a chunk server. A chunk of several copies may be served by any of them. Where the
/// text ends within a line, as that of a very long file does, nobody knows of the last chunk and what comes after it.
StripeLayout parse_moosefs_layout(std::string_view text);

/// GPFS spreads each file over the disks of its storage pool, in an order that it does not tell: the pool stands as the
/// target, with its disks as members where they are known. A file of two replicas lies in the pool twice.
StripeLayout parse_gpfs_layout(std::string_view text, const GpfsDisks& disks = {});

}  // namespace sonde::files
