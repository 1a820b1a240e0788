// SPDX-License-Identifier: Apache-2.0
#include "workloads/search.hpp"

#include <fnmatch.h>
#include <sys/stat.h>
#include <cstring>

namespace sonde::workloads {

EntrySearch::EntrySearch(const plan::EntryFilter& find, std::optional<std::int64_t> newer_than_ns)
    : pattern_(find.name), type_(find.type), newer_than_ns_(newer_than_ns) {
    const std::string& name = find.name;
    if (name.size() > 2 && name.front() == '*' && name.back() == '*') {
        const std::string middle = name.substr(1, name.size() - 2);
        if (middle.find_first_of("*?[\\") == std::string::npos) {
            substring_ = middle;
        }
    }
    if (find.size_min || find.size_max) {
        size_min_ = find.size_min.value_or(0);
        size_max_ = find.size_max.value_or(UINT64_MAX);
        statx_fields_ |= STATX_SIZE;
    }
    if (newer_than_ns) {
        statx_fields_ |= STATX_MTIME;
    }
}

bool EntrySearch::matches_name(const char* name) const noexcept {
    if (pattern_.empty()) {
        return true;
    }
    if (!substring_.empty()) {
        return std::strstr(name, substring_.c_str()) != nullptr;
    }
    return ::fnmatch(pattern_.c_str(), name, 0) == 0;
}

bool EntrySearch::matches_kind(backends::EntryKind kind) const noexcept {
    using backends::EntryKind;
    using plan::EntryType;
    switch (type_) {
        case EntryType::any:
            return true;
        case EntryType::file:
            return kind == EntryKind::file;
        case EntryType::directory:
            return kind == EntryKind::directory;
        case EntryType::link:
            return kind == EntryKind::link;
        case EntryType::other:
            return kind == EntryKind::other;
    }
    return false;
}

bool EntrySearch::matches_size_and_time(const backends::EntryAttributes& attributes) const noexcept {
    return attributes.bytes >= size_min_ && attributes.bytes <= size_max_ &&
           (!newer_than_ns_ || attributes.modified_ns > *newer_than_ns_);
}

}  // namespace sonde::workloads
