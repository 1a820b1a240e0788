// SPDX-License-Identifier: Apache-2.0
// Which storage target holds which byte of a file, from what the file system says of it: Lustre's attribute
// `lustre.lov` in its binary form (plain, with a pool, composite, data on the metadata server, several stripes on one
// target) and Gluster's `trusted.glusterfs.pathinfo`. Knows forms only; `layout_source` asks the file system.
// Layouts in words are read by `layout_words`, those of local file systems are made by `local_layout`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sonde::files {

/// What begins `lustre.lov`: a plain layout, and one with a pool (LOV_USER_MAGIC_V1, _V3).
constexpr std::uint32_t lov_magic_v1 = 0x0BD10BD0, lov_magic_v3 = 0x0BD30BD0;
/// Bytes of a pool's name in `lustre.lov`, with the NUL behind it (LOV_MAXPOOLNAME + 1).
constexpr std::size_t lov_pool_bytes = 16;

/// The bytes [start, end) of a file, spread over `targets` in turn, `stripe` bytes on each. As in Lustre the turn is
/// counted from the beginning of the file, not of the component; `shift` bytes before it where a volume has the turn.
struct LayoutComponent {
    enum class Pattern { raid0, metadata_server, released, foreign, whole };
    std::uint64_t start = 0;
    std::uint64_t end = ~0ULL;  ///< one past the last byte; ~0 = no end
    Pattern pattern = Pattern::raid0;
    std::uint64_t stripe = 0;  ///< bytes; 0 = the whole component lies on each target (or nobody knows)
    std::uint64_t shift = 0;   ///< bytes, less than a turn
    std::uint32_t count = 0;   ///< stripes that were asked for; `targets` is empty until they have been chosen
    std::string pool;
    bool stale = false;                ///< a mirror that is not up to date: nothing is read from it
    std::vector<std::string> targets;  ///< "OST0003" by stripe; the same name twice when it holds two stripes
    std::vector<std::string> members;  ///< what one target consists of, where nobody tells which of them has which byte
};

/// How the bytes of a file lie on the device below a local file system.
struct FileExtents {
    std::uint64_t extents = 0;         ///< as the file system counts them
    std::uint64_t fragments = 0;       ///< of those that follow one another on the device too one is made
    std::uint64_t longest_bytes = 0;   ///< of a fragment
    std::uint64_t unplaced_bytes = 0;  ///< written, but the file system has not chosen their place yet
    bool all = true;                   ///< false: there are more than were examined
};

struct StripeLayout {
    std::string kind;  ///< "lustre", "gluster", "ceph", "beegfs", "gpfs", "local"
    std::uint32_t mirrors = 1;
    std::vector<LayoutComponent> components;
    /// Where components are the extents of one file: the volume below, which all files share. Else empty.
    std::vector<LayoutComponent> volume;
    std::optional<FileExtents> extents;
    std::string unknown;  ///< a sentence on unknown facts; empty when the target is known exactly
};

/// The layout in `value`, the attribute of a file as the kernel gives it (little endian). Throws std::invalid_argument
/// with one sentence when it is not one: too short, a count that does not fit its length, an unknown magic number.
StripeLayout parse_lustre_layout(std::string_view value);
/// The bricks in the words of Gluster. The whole file lies on each brick of a replica. Of a volume that cuts files into
/// shards of `shard` bytes (0: it does not) these are the bricks of the first one, and of the others nobody knows.
StripeLayout parse_gluster_layout(std::string_view value, std::uint64_t shard = 0);
/// "64MB" (2^26), "4194304"; 0 when it is no size.
std::uint64_t bytes_in_gluster_words(std::string_view text);

/// "OST000a": how a target of Lustre is called here, by its index.
std::string target_name(std::uint32_t index);

/// Bytes of a file of `size` bytes on each target. "MDT" are bytes on the metadata server, "?" those of components
/// whose targets nobody knows; a mirror counts as often as it holds the bytes.
std::map<std::string, std::uint64_t> bytes_on_targets(const StripeLayout& layout, std::uint64_t size);
/// The targets of the byte at `offset`: one, or one of each mirror.
std::vector<std::string> targets_of_byte(const StripeLayout& layout, std::uint64_t offset);

/// "raid0", "mdt", "released", "foreign", "whole".
const char* pattern_word(LayoutComponent::Pattern pattern);

}  // namespace sonde::files
