// SPDX-License-Identifier: Apache-2.0
// Which storage target holds which byte of a file. Each file system makes such layouts from what it reports.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace sonde::layouts {

/// The bytes [start, end) of a file, distributed round robin over `targets`, `stripe_bytes` bytes on each. As in Lustre
/// the rounds begin at the beginning of the file, not of the component; `shift_bytes` bytes before it where the volume
/// below distributes.
struct LayoutComponent {
    enum class Pattern { raid0, metadata_server, released, foreign, whole };
    std::uint64_t start = 0;
    std::uint64_t end = ~0ULL;  ///< one past the last byte; ~0 = no end
    Pattern pattern = Pattern::raid0;
    std::uint64_t stripe_bytes = 0;       ///< bytes; 0 = each target holds the whole component, or unknown
    std::uint64_t shift_bytes = 0;        ///< bytes, less than a round
    std::uint32_t requested_stripes = 0;  ///< requested stripes; `targets` is empty until they have been chosen
    std::string pool;
    bool is_stale = false;             ///< a mirror that is not up to date: nothing is read from it
    std::vector<std::string> targets;  ///< "OST0003" by stripe; the same name twice when it holds two stripes
    std::vector<std::string>
        target_members;  ///< parts of the one target, where it is unknown which part holds which byte
};

/// Placement of the bytes of a file on the device below a local file system.
struct FileExtents {
    std::uint64_t extent_count = 0;    ///< as the file system counts them
    std::uint64_t fragment_count = 0;  ///< extents that are adjacent on the device count once
    std::uint64_t longest_bytes = 0;   ///< of a fragment
    std::uint64_t unplaced_bytes = 0;  ///< written, but not yet placed on the device
    bool are_all_known = true;         ///< false: there are more than were examined
};

struct StripeLayout {
    std::string kind;  ///< file system, by one of the names in `schema/record/record.schema.json`
    std::uint32_t mirror_count = 1;
    std::vector<LayoutComponent> components;
    /// If the components are the extents of one file: the volume below, which all files share. Otherwise empty.
    std::vector<LayoutComponent> volume_components;
    std::optional<FileExtents> extents;
    std::string unknown_facts;  ///< a sentence on unknown facts; empty when the target is known exactly
};

/// Adds the only component of a layout of this kind.
LayoutComponent& add_single_component(StripeLayout& layout, const char* kind);

/// Bytes of a file of `size` bytes on each target. "MDT" are bytes on the metadata server, "?" those of components
/// whose targets are unknown; each mirror that holds the bytes counts.
std::map<std::string, std::uint64_t> compute_bytes_by_target(const StripeLayout& layout, std::uint64_t size);
/// The targets of the byte at `offset`: one, or one of each mirror.
std::vector<std::string> find_targets_of_byte(const StripeLayout& layout, std::uint64_t offset);

/// "raid0", "mdt", "released", "foreign", "whole".
const char* pattern_name(LayoutComponent::Pattern pattern);

}  // namespace sonde::layouts
