// SPDX-License-Identifier: Apache-2.0
#include "files/layout_words.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace sonde::files {
namespace {

[[noreturn]] void no_layout(const std::string& who, const std::string& why) {
    throw std::invalid_argument("what " + who + " says of the file's layout " + why);
}

std::optional<std::uint64_t> number_in(std::string_view word, std::string_view* remainder = nullptr) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    const std::string_view suffix = word.substr(static_cast<std::size_t>(end - word.data()));
    if (error != std::errc() || (remainder == nullptr && !suffix.empty())) {
        return std::nullopt;
    }
    if (remainder != nullptr) {
        *remainder = suffix;
    }
    return value;
}

/// "512K", "1M", "65536". Absent above 1 TiB: no chunk is so large, and a turn over all targets must fit in 64 bits.
std::optional<std::uint64_t> size_in(std::string_view word) {
    constexpr std::uint64_t most = 1ULL << 40U;
    std::string_view unit;
    const auto count = number_in(word, &unit);
    constexpr std::string_view units = "KMGT";
    if (!count || unit.size() > 1 || (unit.size() == 1 && units.find(unit[0]) == std::string_view::npos)) {
        return std::nullopt;
    }
    const std::size_t shift = unit.empty() ? 0 : 10 * (units.find(unit[0]) + 1);
    return *count <= most >> shift ? std::optional(*count << shift) : std::nullopt;
}

std::string_view trimmed(std::string_view text) {
    const std::size_t first = text.find_first_not_of(" \t\r");
    return first == std::string_view::npos ? std::string_view()
                                           : text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

/// What follows `name` on its line; absent when no line begins so.
std::optional<std::string_view> after(std::string_view text, std::string_view name) {
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        const std::string_view line = trimmed(text.substr(begin, end - begin));
        if (line.starts_with(name)) {
            return trimmed(line.substr(name.size()));
        }
        begin = end + 1;
    }
    return std::nullopt;
}

LayoutComponent& alone(StripeLayout& layout, const char* kind) {
    layout.kind = kind;
    return layout.components.emplace_back();
}

/// 12 of "chunk 12: 00000000000000AB_00000001 / (id:171 ver:1)"; absent when the line begins otherwise.
std::optional<std::uint64_t> chunk_number(std::string_view line) {
    constexpr std::string_view begin = "chunk ";
    std::string_view remainder;
    return line.starts_with(begin) ? number_in(line.substr(begin.size()), &remainder) : std::nullopt;
}

using Copies = std::vector<std::string>;

/// Who has a valid copy of each chunk, in the order of the file. What was cut off in the middle of a line is no part.
std::vector<Copies> chunks_of_moosefs(std::string_view text) {
    std::vector<Copies> chunks;
    for (std::size_t begin = 0, end = 0; (end = text.find('\n', begin)) != std::string_view::npos; begin = end + 1) {
        const std::string_view line = trimmed(text.substr(begin, end - begin));
        if (const auto number = chunk_number(line)) {
            if (*number != chunks.size()) {  // a number that is only believed could ask for any amount of memory
                no_layout("mfsfileinfo", "counts chunk " + std::to_string(*number) + " where " +
                                             std::to_string(chunks.size()) + " comes next");
            }
            chunks.emplace_back();
        } else if (const std::size_t colon = line.find(": ");
                   line.starts_with("copy ") && colon != std::string_view::npos && !chunks.empty()) {
            // "copy 1: 10.0.0.7:9422 (status:VALID)"
            const std::string_view copy = line.substr(colon + 2);
            if (copy.find("(status:VALID)") != std::string_view::npos) {
                chunks.back().emplace_back(copy.substr(0, copy.find(' ')));
            }
        }
    }
    return chunks;
}

/// "4201 @ oss-4-4-stor2 [ID: 42]" or, of a mirror, "2".
std::string beegfs_target(std::string_view text) {
    const std::size_t separator = text.find(" @ ");
    if (separator == std::string_view::npos) {
        return "buddy group " + std::string(text);
    }
    const std::size_t node = separator + 3;
    return std::string(text.substr(0, separator)) + "@" +
           std::string(trimmed(text.substr(node, text.find(" [", node) - node)));
}

}  // namespace

CephStripes ceph_stripes(std::string_view value) {
    CephStripes stripes;
    for (std::size_t begin = 0; begin < value.size();) {
        const std::size_t end = std::min(value.find_first_of(std::string_view(" \0", 2), begin), value.size());
        const std::string_view word = value.substr(begin, end - begin);
        const std::size_t sign = std::min(word.find('='), word.size());
        const std::string_view name = word.substr(0, sign);
        const std::string_view setting = word.substr(std::min(sign + 1, word.size()));
        if (name == "stripe_unit") {
            stripes.unit = number_in(setting).value_or(0);
        } else if (name == "stripe_count") {
            stripes.count = number_in(setting).value_or(0);
        } else if (name == "object_size") {
            stripes.object = number_in(setting).value_or(0);
        } else if (name == "pool") {
            stripes.pool = setting;
        } else if (name == "pool_namespace") {
            stripes.space = setting;
        }
        begin = end + 1;
    }
    if (stripes.unit == 0 || stripes.count == 0 || stripes.pool.empty()) {
        no_layout("CephFS", "lacks stripe_unit, stripe_count or pool");
    }
    return stripes;
}

StripeLayout parse_ceph_layout(std::string_view value) {
    const CephStripes stripes = ceph_stripes(value);
    StripeLayout layout;
    LayoutComponent& component = alone(layout, "ceph");
    component.stripe = stripes.unit;
    component.count = static_cast<std::uint32_t>(stripes.count);
    component.pool = stripes.pool;
    component.targets = {"pool " + stripes.pool};
    return layout;
}

StripeLayout parse_moosefs_layout(std::string_view text) {
    constexpr std::uint64_t chunk_bytes = 64ULL << 20U;  // MFSCHUNKSIZE, the same in every version
    std::vector<Copies> chunks = chunks_of_moosefs(text);
    const bool cut = !text.empty() && text.back() != '\n';
    if (cut && !chunks.empty()) {
        chunks.pop_back();  // copies of it may be among what is missing
    }
    StripeLayout layout;
    layout.kind = "moosefs";
    const bool single =
        std::all_of(chunks.begin(), chunks.end(), [](const auto& copies) { return copies.size() == 1; });
    for (std::size_t i = 0; i < chunks.size(); ++i) {
        if (!single || i == 0) {
            LayoutComponent& component = layout.components.emplace_back();
            component.pattern = single ? LayoutComponent::Pattern::raid0 : LayoutComponent::Pattern::whole;
            component.stripe = single ? chunk_bytes : 0;
            component.start = i * chunk_bytes;
        }
        LayoutComponent& here = layout.components.back();
        here.end = (i + 1) * chunk_bytes;
        here.targets.insert(here.targets.end(), chunks[i].begin(), chunks[i].end());
        here.count = static_cast<std::uint32_t>(here.targets.size());
    }
    if (layout.components.empty()) {
        no_layout("mfsfileinfo", "names no chunk");
    }
    if (cut) {
        LayoutComponent& unlisted = layout.components.emplace_back();
        unlisted.start = chunks.size() * chunk_bytes;
        unlisted.pattern = LayoutComponent::Pattern::foreign;
    }
    return layout;
}

StripeLayout parse_beegfs_layout(std::string_view text) {
    StripeLayout layout;
    LayoutComponent& component = alone(layout, "beegfs");
    const auto chunk = after(text, "+ Chunksize:");
    component.stripe = chunk ? size_in(*chunk).value_or(0) : 0;
    if (component.stripe == 0) {
        no_layout("beegfs-ctl", "has no chunk size");
    }
    if (const auto pool = after(text, "+ Storage Pool:")) {
        component.pool = pool->substr(0, pool->find(' '));
    }
    std::size_t line_end = text.find("+ Storage targets:");
    line_end = line_end == std::string_view::npos ? text.find("+ Storage mirror buddy groups:") : line_end;
    line_end = line_end == std::string_view::npos ? line_end : text.find('\n', line_end);
    while (line_end != std::string_view::npos) {
        const std::size_t end = std::min(text.find('\n', line_end + 1), text.size());
        const std::string_view line = trimmed(text.substr(line_end + 1, end - line_end - 1));
        if (!line.starts_with("+ ")) {
            break;
        }
        component.targets.push_back(beegfs_target(trimmed(line.substr(2))));
        line_end = end < text.size() ? end : std::string_view::npos;
    }
    if (component.targets.empty()) {
        no_layout("beegfs-ctl", "names no target");
    }
    component.count = static_cast<std::uint32_t>(component.targets.size());
    return layout;
}

StripeLayout parse_gpfs_layout(std::string_view text, const GpfsDisks& disks) {
    StripeLayout layout;
    LayoutComponent& component = alone(layout, "gpfs");
    const auto pool = after(text, "storage pool name:");
    if (!pool || pool->empty()) {
        no_layout("mmlsattr", "names no storage pool");
    }
    component.pattern = LayoutComponent::Pattern::whole;
    component.pool = *pool;
    component.targets = {"pool " + component.pool};
    component.count = 1;
    const auto members = disks.of_pool.find(component.pool);
    if (members != disks.of_pool.end()) {
        component.members = members->second;
    }
    // "data replication:     2 max 2": each block lies in the pool twice, on different disks.
    const auto copies = after(text, "data replication:");
    std::string_view remainder;
    layout.mirrors = copies && number_in(*copies, &remainder) == 2 ? 2 : 1;
    if (layout.mirrors == 2) {
        layout.components.push_back(LayoutComponent(component));
    }
    return layout;
}

}  // namespace sonde::files
