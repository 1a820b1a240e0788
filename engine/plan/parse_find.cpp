// SPDX-License-Identifier: Apache-2.0
#include "plan/parse_find.hpp"

#include "plan/words.hpp"

#include <cmath>

namespace sonde::plan {
namespace {

using namespace words;

void read_size(const Reader& in, Find& find) {
    if (in.has("size") && (in.has("size_min") || in.has("size_max"))) {
        in.fail("size", "is the exact size, so size_min and size_max have no meaning beside it: keep one");
    }
    if (in.has("size")) {
        find.size_min = find.size_max = in.bytes("size");
    } else {
        find.size_min = in.bytes("size_min");
        find.size_max = in.bytes("size_max");
    }
    if (find.size_min && find.size_max && *find.size_min > *find.size_max) {
        in.fail("size_min", "is more than size_max, so nothing could be found");
    }
}

void read_age(const Reader& in, Find& find) {
    if (in.has("newer_than") && in.has("newer_than_file")) {
        in.fail("newer_than", "and newer_than_file exclude each other: keep one");
    }
    constexpr double most = 9e9;  // seconds since 1970; a time in ns still fits into 64 bits
    if (const std::optional<double> seconds = in.number("newer_than", 0, most)) {
        find.newer_than_ns = std::llround(*seconds * 1e9);
    }
    find.newer_than_file = in.text("newer_than_file", find.newer_than_file);
    if (in.has("newer_than_file") && find.newer_than_file.empty()) {
        in.fail("newer_than_file", "is empty: name a file");
    }
}

}  // namespace

Find read_find(const Reader& in) {
    Find find;
    constexpr std::size_t longest = 255;
    find.name = in.text("name", find.name);
    if (find.name.size() > longest || find.name.find('/') != std::string::npos ||
        find.name.find('\0') != std::string::npos) {
        in.fail("name", "must be a pattern of at most 255 bytes without '/': it is for the name, not for the path");
    }
    find.type = in.choice("type", entry_types, find.type);
    read_size(in, find);
    read_age(in, find);
    in.done();
    if (find.name.empty() && find.type == EntryType::any && !find.needs_facts()) {
        in.fail("name", "or another condition is missing: everything would be found");
    }
    return find;
}

}  // namespace sonde::plan
