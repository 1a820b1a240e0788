// SPDX-License-Identifier: Apache-2.0
// Which OSD of Ceph answers for an object: a hash of its name gives its placement group, and the monitors report which
// OSD is the first of each group. Asked once; after that it is arithmetic.
#pragma once

#include "layouts/stripe_layout.hpp"
#include "records/program_output.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace sonde::layouts {

/// Placement groups at the time of the query to the monitors. Without them the locations of objects are unknown.
class CephPlacement {
 public:
    CephPlacement() = default;
    /// An empty placement with the reason ("`ceph osd pool ls`: …").
    explicit CephPlacement(std::string why_unknown) : why_unknown_(std::move(why_unknown)) {}
    /// From what `ceph osd pool ls detail` and `ceph pg dump pgs_brief` print with `--format json`. Throws
    /// std::invalid_argument with one sentence when they are nothing like that.
    static CephPlacement from_command_outputs(std::string_view pools, std::string_view groups);
    /// Empty when the groups are known, and when no monitor was queried.
    const std::string& why_unknown() const { return why_unknown_; }
    /// For the other processes of a run, and from there.
    std::string to_json_text() const;
    static CephPlacement from_json_text(std::string_view text);

    bool has_pool(const std::string& pool) const;
    /// "osd.7", the acting primary: it answers every read and write of the object. Empty: not known. `space` is the
    /// namespace of the object in its pool, mostly empty.
    std::string find_osd(const std::string& pool, const std::string& space, std::string_view object) const;

 private:
    struct Pool {
        std::uint32_t placement_groups = 0;
        std::map<std::uint32_t, std::int32_t> primary_osd_of_group;  ///< number of a group -> OSD
    };
    std::map<std::string, Pool> pools_;
    std::string why_unknown_;
};

/// The layout of a file of CephFS with the OSD of each block in place of its pool, as far as the first 16,384 blocks.
/// `value` is its attribute `ceph.file.layout`, of which its objects are called by their `inode`. Throws
/// std::invalid_argument with one sentence.
StripeLayout place_ceph_layout(std::string_view value, std::uint64_t inode, const CephPlacement& placement);

/// Ceph's hash of names (Robert Jenkins, 1996), which pools with object_hash 2 use: all since 2009.
std::uint32_t hash_ceph_name(std::string_view name);

/// Asks the monitors through the program `ceph`, twice, each time for no longer than `limit`. One that knows nothing,
/// and says why, where the program is not there, may not ask or does not answer.
CephPlacement query_ceph_placement(std::chrono::milliseconds limit = records::default_time_limit);

}  // namespace sonde::layouts
