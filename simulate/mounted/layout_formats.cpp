// SPDX-License-Identifier: Apache-2.0
#include "mounted/layout_formats.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <sstream>

namespace sonde::simulate {
namespace {

// From lustre/include/uapi/linux/lustre/lustre_user.h. The structures are packed and have no padding.
constexpr std::uint32_t lov_magic_v1 = 0x0BD10BD0, lov_magic_v3 = 0x0BD30BD0, lov_raid0 = 1;
constexpr std::uint16_t lov_all = 0xFFFF;
constexpr std::size_t pool_name = 16;

struct LovHead {
    std::uint32_t magic, pattern;
    std::uint64_t object_id, object_seq;
    std::uint32_t stripe_size;
    std::uint16_t stripe_count, stripe_offset;  // when read: the generation of the layout
};
struct LovObject {
    std::uint64_t object_id, object_seq;
    std::uint32_t generation, index;
};
static_assert(sizeof(LovHead) == 32 && sizeof(LovObject) == 24);

void append(std::string& bytes, const void* from, std::size_t length) {
    bytes.append(static_cast<const char*>(from), length);
}

std::uint32_t index_of_stripe(const ModelLayout& layout, const SystemModel& site, std::uint32_t stripe) {
    return site.targets[(layout.start + stripe) % site.targets.size()].index_in_file_system;
}

}  // namespace

ModelLayout RequestedLayout::apply_to(const ModelLayout& defaults, const SystemModel& site) const {
    ModelLayout layout = defaults;
    const auto target_count = static_cast<std::uint32_t>(site.targets.size());
    layout.size = size.value_or(defaults.size);
    layout.count = count ? std::min(*count, target_count) : defaults.count;
    if (start) {
        layout.start = target_count;  // the machine rejects it if no target has the index
        for (std::uint32_t i = 0; i < target_count; ++i) {
            layout.start = site.targets[i].index_in_file_system == *start ? i : layout.start;
        }
    }
    return layout;
}

std::string format_lov(const ModelLayout& layout, const SystemModel& site, std::uint64_t object) {
    LovHead head{};
    head.magic = lov_magic_v1;
    head.pattern = lov_raid0;
    head.object_id = object;
    head.stripe_size = static_cast<std::uint32_t>(layout.size);
    head.stripe_count = static_cast<std::uint16_t>(layout.count);
    std::string bytes;
    append(bytes, &head, sizeof head);
    for (std::uint32_t stripe = 0; stripe < layout.count; ++stripe) {
        const LovObject stripe_object{object, 0, 0, index_of_stripe(layout, site, stripe)};
        append(bytes, &stripe_object, sizeof stripe_object);
    }
    return bytes;
}

std::optional<RequestedLayout> parse_lov(std::string_view value) {
    LovHead head{};
    if (value.size() < sizeof head) {
        return std::nullopt;
    }
    std::memcpy(&head, value.data(), sizeof head);
    const bool is_v3 = head.magic == lov_magic_v3;
    if ((!is_v3 && head.magic != lov_magic_v1) || (is_v3 && value.size() < sizeof head + pool_name) ||
        (head.pattern != lov_raid0 && head.pattern != 0)) {
        return std::nullopt;
    }
    RequestedLayout layout;
    if (head.stripe_size != 0) {
        layout.size = head.stripe_size;
    }
    if (head.stripe_count != 0) {
        layout.count = head.stripe_count == lov_all ? ~0U : head.stripe_count;
    }
    if (head.stripe_offset != lov_all) {
        layout.start = head.stripe_offset;
    }
    return layout;
}

std::string format_layout(const ModelLayout& layout, const SystemModel& site) {
    std::string text = "stripe_count: " + std::to_string(layout.count) +
                       " stripe_size: " + std::to_string(layout.size) +
                       " stripe_offset: " + std::to_string(index_of_stripe(layout, site, 0)) + " targets: ";
    for (std::uint32_t stripe = 0; stripe < layout.count; ++stripe) {
        text += (stripe > 0 ? "," : "") + std::to_string(index_of_stripe(layout, site, stripe));
    }
    return text;
}

std::optional<RequestedLayout> parse_layout(std::string_view text) {
    std::istringstream stream{std::string(text)};
    RequestedLayout layout;
    std::string name, value;
    bool has_values = false;
    while (stream >> name >> value) {
        if (name == "targets:") {
            continue;  // follows from the other values
        }
        std::int64_t number = 0;
        const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
        if (error != std::errc{} || end != value.data() + value.size() || number < -1 || number > 0xFFFFFFFFLL) {
            return std::nullopt;
        }
        has_values = true;
        if (name == "stripe_count:" && number != 0) {
            layout.count = static_cast<std::uint32_t>(number);
        } else if (name == "stripe_size:" && number > 0) {
            layout.size = static_cast<std::uint64_t>(number);
        } else if (name == "stripe_offset:" && number >= 0) {
            layout.start = static_cast<std::uint32_t>(number);
        } else if (name != "stripe_offset:" && !(number == 0 && (name == "stripe_count:" || name == "stripe_size:"))) {
            return std::nullopt;
        }
    }
    return has_values ? std::optional(layout) : std::nullopt;
}

}  // namespace sonde::simulate
