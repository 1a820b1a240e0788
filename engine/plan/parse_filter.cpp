// SPDX-License-Identifier: Apache-2.0
#include "plan/parse_filter.hpp"

#include "plan/choices.hpp"

#include <cmath>

namespace sonde::plan {
namespace {

using namespace choices;

void read_size(const Reader& in, EntryFilter& filter) {
    if (in.has("size") && (in.has("size_min") || in.has("size_max"))) {
        in.fail("size", "is the exact size, so size_min and size_max have no meaning beside it: keep one");
    }
    if (in.has("size")) {
        filter.size_min = filter.size_max = in.bytes("size");
    } else {
        filter.size_min = in.bytes("size_min");
        filter.size_max = in.bytes("size_max");
    }
    if (filter.size_min && filter.size_max && *filter.size_min > *filter.size_max) {
        in.fail("size_min", "is more than size_max, so nothing could be found");
    }
}

void read_age(const Reader& in, EntryFilter& filter) {
    if (in.has("newer_than") && in.has("newer_than_file")) {
        in.fail("newer_than", "and newer_than_file exclude each other: keep one");
    }
    constexpr double most = 9e9;  // seconds since 1970; a time in ns still fits into 64 bits
    if (const std::optional<double> seconds = in.number("newer_than", 0, most)) {
        filter.newer_than_ns = std::llround(*seconds * 1e9);
    }
    filter.newer_than_file = in.text("newer_than_file", filter.newer_than_file);
    if (in.has("newer_than_file") && filter.newer_than_file.empty()) {
        in.fail("newer_than_file", "is empty: name a file");
    }
}

}  // namespace

EntryFilter read_entry_filter(const Reader& in) {
    EntryFilter filter;
    constexpr std::size_t longest = 255;
    filter.name = in.text("name", filter.name);
    if (filter.name.size() > longest || filter.name.find('/') != std::string::npos ||
        filter.name.find('\0') != std::string::npos) {
        in.fail("name", "must be a pattern of at most 255 bytes without '/': it is for the name, not for the path");
    }
    filter.type = in.choice("type", entry_types, filter.type);
    read_size(in, filter);
    read_age(in, filter);
    in.reject_unknown_members();
    if (filter.name.empty() && filter.type == EntryType::any && !filter.needs_facts()) {
        in.fail("name", "or another condition is missing: everything would be found");
    }
    return filter;
}

}  // namespace sonde::plan
