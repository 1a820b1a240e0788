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

std::optional<std::uint64_t> number_in(std::string_view word, std::string_view* rest = nullptr) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    const std::string_view left = word.substr(static_cast<std::size_t>(end - word.data()));
    if (error != std::errc() || (rest == nullptr && !left.empty())) {
        return std::nullopt;
    }
    if (rest != nullptr) {
        *rest = left;
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
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        const std::string_view line = trimmed(text.substr(at, end - at));
        if (line.starts_with(name)) {
            return trimmed(line.substr(name.size()));
        }
        at = end + 1;
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
    std::string_view rest;
    return line.starts_with(begin) ? number_in(line.substr(begin.size()), &rest) : std::nullopt;
}

using Copies = std::vector<std::string>;

/// Who has a valid copy of each chunk, in the order of the file. What was cut off in the middle of a line is no part.
std::vector<Copies> chunks_of_moosefs(std::string_view text) {
    std::vector<Copies> chunks;
    for (std::size_t at = 0, end = 0; (end = text.find('\n', at)) != std::string_view::npos; at = end + 1) {
        const std::string_view line = trimmed(text.substr(at, end - at));
        if (const auto number = chunk_number(line)) {
            if (*number != chunks.size()) {  // a number that is only believed could ask for any amount of memory
                no_layout("mfsfileinfo", "counts chunk " + std::to_string(*number) + " where " +
                                             std::to_string(chunks.size()) + " comes next");
            }
            chunks.emplace_back();
        } else if (const std::size_t colon = line.find(": ");
                   line.starts_with("copy ") && colon != std::string_view::npos && !chunks.empty()) {
            // "copy 1: 10.0.0.7:9422 (status:VALID)"
            const std::string_view rest = line.substr(colon + 2);
            if (rest.find("(status:VALID)") != std::string_view::npos) {
                chunks.back().emplace_back(rest.substr(0, rest.find(' ')));
            }
        }
    }
    return chunks;
}

/// "4201 @ oss-4-4-stor2 [ID: 42]" or, of a mirror, "2".
std::string beegfs_target(std::string_view words) {
    const std::size_t at = words.find(" @ ");
    if (at == std::string_view::npos) {
        return "buddy group " + std::string(words);
    }
    const std::size_t node = at + 3;
    return std::string(words.substr(0, at)) + "@" +
           std::string(trimmed(words.substr(node, words.find(" [", node) - node)));
}

}  // namespace

CephStripes ceph_stripes(std::string_view value) {
    CephStripes told;
    for (std::size_t at = 0; at < value.size();) {
        const std::size_t end = std::min(value.find_first_of(std::string_view(" \0", 2), at), value.size());
        const std::string_view word = value.substr(at, end - at);
        const std::size_t sign = std::min(word.find('='), word.size());
        const std::string_view name = word.substr(0, sign);
        const std::string_view said = word.substr(std::min(sign + 1, word.size()));
        if (name == "stripe_unit") {
            told.unit = number_in(said).value_or(0);
        } else if (name == "stripe_count") {
            told.count = number_in(said).value_or(0);
        } else if (name == "object_size") {
            told.object = number_in(said).value_or(0);
        } else if (name == "pool") {
            told.pool = said;
        } else if (name == "pool_namespace") {
            told.space = said;
        }
        at = end + 1;
    }
    if (told.unit == 0 || told.count == 0 || told.pool.empty()) {
        no_layout("CephFS", "lacks stripe_unit, stripe_count or pool");
    }
    return told;
}

StripeLayout parse_ceph_layout(std::string_view value) {
    const CephStripes told = ceph_stripes(value);
    StripeLayout layout;
    LayoutComponent& one = alone(layout, "ceph");
    one.stripe = told.unit;
    one.count = static_cast<std::uint32_t>(told.count);
    one.pool = told.pool;
    one.targets = {"pool " + told.pool};
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
            LayoutComponent& one = layout.components.emplace_back();
            one.pattern = single ? LayoutComponent::Pattern::raid0 : LayoutComponent::Pattern::whole;
            one.stripe = single ? chunk_bytes : 0;
            one.start = i * chunk_bytes;
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
        LayoutComponent& rest = layout.components.emplace_back();
        rest.start = chunks.size() * chunk_bytes;
        rest.pattern = LayoutComponent::Pattern::foreign;
    }
    return layout;
}

StripeLayout parse_beegfs_layout(std::string_view text) {
    StripeLayout layout;
    LayoutComponent& one = alone(layout, "beegfs");
    const auto chunk = after(text, "+ Chunksize:");
    one.stripe = chunk ? size_in(*chunk).value_or(0) : 0;
    if (one.stripe == 0) {
        no_layout("beegfs-ctl", "has no chunk size");
    }
    if (const auto pool = after(text, "+ Storage Pool:")) {
        one.pool = pool->substr(0, pool->find(' '));
    }
    std::size_t at = text.find("+ Storage targets:");
    at = at == std::string_view::npos ? text.find("+ Storage mirror buddy groups:") : at;
    at = at == std::string_view::npos ? at : text.find('\n', at);
    while (at != std::string_view::npos) {
        const std::size_t end = std::min(text.find('\n', at + 1), text.size());
        const std::string_view line = trimmed(text.substr(at + 1, end - at - 1));
        if (!line.starts_with("+ ")) {
            break;
        }
        one.targets.push_back(beegfs_target(trimmed(line.substr(2))));
        at = end < text.size() ? end : std::string_view::npos;
    }
    if (one.targets.empty()) {
        no_layout("beegfs-ctl", "names no target");
    }
    one.count = static_cast<std::uint32_t>(one.targets.size());
    return layout;
}

StripeLayout parse_gpfs_layout(std::string_view text, const GpfsDisks& disks) {
    StripeLayout layout;
    LayoutComponent& one = alone(layout, "gpfs");
    const auto pool = after(text, "storage pool name:");
    if (!pool || pool->empty()) {
        no_layout("mmlsattr", "names no storage pool");
    }
    one.pattern = LayoutComponent::Pattern::whole;
    one.pool = *pool;
    one.targets = {"pool " + one.pool};
    one.count = 1;
    const auto known = disks.of_pool.find(one.pool);
    if (known != disks.of_pool.end()) {
        one.members = known->second;
    }
    // "data replication:     2 max 2": each block lies in the pool twice, on different disks.
    const auto copies = after(text, "data replication:");
    std::string_view rest;
    layout.mirrors = copies && number_in(*copies, &rest) == 2 ? 2 : 1;
    if (layout.mirrors == 2) {
        layout.components.push_back(LayoutComponent(one));
    }
    return layout;
}

}  // namespace sonde::files
