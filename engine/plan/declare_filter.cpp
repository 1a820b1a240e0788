// SPDX-License-Identifier: Apache-2.0
// Members of `meta.find`: what a walk searches for.
#include "plan/declare_filter.hpp"

#include "plan/plan.hpp"
#include "plan/value_kinds.hpp"

namespace sonde::plan {
namespace {

using namespace choices;

constexpr int longest_name = 255;
constexpr TextRule name_pattern{
    .holds =
        [](const std::string& name) {
            return name.size() <= longest_name && name.find_first_of(std::string("/\0", 2)) == std::string::npos;
        },
    .complaint = "must be a pattern of at most 255 bytes without '/': it is for the name, not for the path",
    .pattern = "^[^/]+$",
    .least_length = 1,
    .most_length = longest_name};

void describe_size(Visitor& visitor, EntryFilter& filter) {
    std::optional<Bytes> size;
    visitor.member("size", size, BytesKind{}, "size in bytes", {.replaces = {"size_min", "size_max"}});
    visitor.member("size_min", filter.size_min, BytesKind{}, "least size in bytes", {.replaces = {"size"}});
    visitor.member("size_max", filter.size_max, BytesKind{}, "greatest size in bytes", {.replaces = {"size"}});
    visitor.when_reading([&](const Reader& in) {
        if (size && (filter.size_min || filter.size_max)) {
            in.fail("size", "is the exact size, so size_min and size_max have no meaning beside it: keep one");
        }
        if (size) {
            filter.size_min = filter.size_max = size;
        }
        if (filter.size_min && filter.size_max && *filter.size_min > *filter.size_max) {
            in.fail("size_min", "is more than size_max, so nothing could be found");
        }
    });
}

}  // namespace

void describe(Visitor& visitor, EntryFilter& filter) {
    visitor.member("name", filter.name, TextKind(name_pattern),
                   "shell pattern for the name without its path, like *01*; a bracket expression, * and ? as in "
                   "fnmatch(3), byte by byte",
                   unset);
    visitor.member("type", filter.type, choice(entry_types), "type of the entry; links are not followed");
    describe_size(visitor, filter);
    visitor.when_reading([](const Reader& in) {
        if (in.has("newer_than") && in.has("newer_than_file")) {
            in.fail("newer_than", "and newer_than_file exclude each other: keep one");
        }
    });
    visitor.member("newer_than", filter.newer_than_ns, TimeKind{},
                   "last modified later than this: seconds since 1970-01-01 UTC", {.replaces = {"newer_than_file"}});
    visitor.member(
        "newer_than_file", filter.newer_than_file,
        TextKind(TextRule{.holds = [](const std::string& file) { return !file.empty(); },
                          .complaint = "is empty: name a file",
                          .least_length = 1}),
        "last modified later than this file at the start of the phase; a relative path begins at target.path",
        {.absence = Absence::unset, .replaces = {"newer_than"}});
    visitor.when_reading([&filter](const Reader& in) {
        in.reject_unknown_members();
        if (filter.name.empty() && filter.type == EntryType::any && !filter.needs_facts()) {
            in.fail("name", "or another condition is missing: everything would be found");
        }
    });
}

}  // namespace sonde::plan
