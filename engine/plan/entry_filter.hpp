// SPDX-License-Identifier: Apache-2.0
// The search conditions of a walk. Values only; the JSON form is meta.find of schema/plan.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace sonde::plan {

enum class EntryType { any, file, directory, link, other };

/// Conditions on one directory entry. All conditions that are set must hold.
struct EntryFilter {
    std::string name;  ///< shell pattern (fnmatch) for the name without its path; empty = any
    EntryType type = EntryType::any;
    std::optional<std::uint64_t> size_min, size_max;  ///< bytes, both included
    std::optional<std::int64_t> newer_than_ns;        ///< last modified later than this, since 1970
    std::string newer_than_file;                      ///< modified later than this file; empty = no such condition

    /// Whether names and types do not decide, so that entries must be examined.
    bool needs_attributes() const { return size_min || size_max || newer_than_ns || !newer_than_file.empty(); }
};

}  // namespace sonde::plan
