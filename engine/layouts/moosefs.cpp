// SPDX-License-Identifier: Apache-2.0
#include "layouts/moosefs.hpp"

#include "layouts/layout_system.hpp"
#include "layouts/text_fields.hpp"
#include "records/mounts.hpp"

#include <algorithm>

namespace sonde::layouts {
namespace {

/// 12 of "chunk 12: 00000000000000AB_00000001 / (id:171 ver:1)"; absent when the line begins otherwise.
std::optional<std::uint64_t> parse_chunk_number(std::string_view line) {
    constexpr std::string_view begin = "chunk ";
    std::string_view remainder;
    return line.starts_with(begin) ? parse_number(line.substr(begin.size()), &remainder) : std::nullopt;
}

using Copies = std::vector<std::string>;

/// The servers with a valid copy of each chunk, in file order. What was cut off in the middle of a line is no part.
std::vector<Copies> parse_chunk_copies(std::string_view text) {
    std::vector<Copies> chunks;
    for (std::size_t begin = 0, end = 0; (end = text.find('\n', begin)) != std::string_view::npos; begin = end + 1) {
        const std::string_view line = trim(text.substr(begin, end - begin));
        if (const auto number = parse_chunk_number(line)) {
            if (*number != chunks.size()) {  // a number that is only believed could ask for any amount of memory
                throw_invalid_layout("mfsfileinfo", "counts chunk " + std::to_string(*number) + " where " +
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

/// Its source is "mfs#10.0.0.1:9421"; its type is plain "fuse".
bool is_on_moosefs(const std::string& path) {
    const std::optional<records::Mount> mount = records::find_mount(path);
    return mount && mount->source.starts_with("mfs#");
}

std::optional<StripeLayout> query_moosefs_layout(const std::string& path, std::uint32_t type_number) {
    constexpr std::uint32_t fuse_type = 0x65735546;
    if (type_number != fuse_type || !is_on_moosefs(path)) {
        return std::nullopt;
    }
    const std::string text = run_layout_program({"mfsfileinfo", path});
    const bool has_chunks = text.find("chunk ") != std::string::npos;  // an empty file has none
    return has_chunks ? std::optional(parse_moosefs_layout(text)) : std::nullopt;
}

MissingLayout explain_missing_moosefs_layout(const std::string& path) {
    return is_on_moosefs(path) ? explain_program_failure({"mfsfileinfo", path}) : MissingLayout();
}

}  // namespace

StripeLayout parse_moosefs_layout(std::string_view text) {
    constexpr std::uint64_t chunk_bytes = 64ULL << 20U;  // MFSCHUNKSIZE, the same in every version
    std::vector<Copies> chunks = parse_chunk_copies(text);
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
            component.stripe_bytes = single ? chunk_bytes : 0;
            component.start = i * chunk_bytes;
        }
        LayoutComponent& here = layout.components.back();
        here.end = (i + 1) * chunk_bytes;
        here.targets.insert(here.targets.end(), chunks[i].begin(), chunks[i].end());
        here.requested_stripes = static_cast<std::uint32_t>(here.targets.size());
    }
    if (layout.components.empty()) {
        throw_invalid_layout("mfsfileinfo", "names no chunk");
    }
    if (cut) {
        LayoutComponent& unlisted = layout.components.emplace_back();
        unlisted.start = chunks.size() * chunk_bytes;
        unlisted.pattern = LayoutComponent::Pattern::foreign;
    }
    return layout;
}

extern const LayoutSystem moosefs_system;
const LayoutSystem moosefs_system{
    .types = {"fuse"},
    .max_queries = 256,  // mfsfileinfo is small and asks one server
    .read_attribute = nullptr,
    .query = query_moosefs_layout,
    .explain_missing = explain_missing_moosefs_layout,
    .striping = nullptr,
    // A file system in user space may have the attribute of another kind.
    .readable_while_timed = true,
    .is_any_other_fuse_type = true,
};

}  // namespace sonde::layouts
