// SPDX-License-Identifier: Apache-2.0
// The conditions of a search, ready to be asked for each entry of a walk: nothing here allocates.
#pragma once

#include "backends/names.hpp"
#include "plan/entry_filter.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace sonde::workloads {

class EntrySearch {
 public:
    /// `newer_than_ns`: only entries modified after this time match (ns since 1970). Absent: any time.
    EntrySearch(const plan::EntryFilter& find, std::optional<std::int64_t> newer_than_ns);

    bool matches_name(const char* name) const noexcept;
    bool matches_kind(backends::EntryKind kind) const noexcept;
    bool matches_size_and_time(const backends::EntryAttributes& attributes) const noexcept;
    /// Whether the name and the kind do not decide.
    bool needs_attributes() const noexcept { return statx_fields_ != 0; }
    /// The fields that statx(2) must return.
    std::uint32_t statx_fields() const noexcept { return statx_fields_; }

 private:
    std::string pattern_;    ///< empty: any name
    std::string substring_;  ///< the pattern is only this between two stars: a plain search, ten times faster
    plan::EntryType type_;
    std::uint64_t size_min_ = 0, size_max_ = UINT64_MAX;
    std::optional<std::int64_t> newer_than_ns_;
    std::uint32_t statx_fields_ = 0;
};

}  // namespace sonde::workloads
