// SPDX-License-Identifier: Apache-2.0
#include "mounted/layout_forms.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <sstream>

namespace sonde::simulate {
namespace {

// Of lustre/include/uapi/linux/lustre/lustre_user.h; packed, and without gaps as it is.
constexpr std::uint32_t lov_magic_v1 = 0x0BD10BD0, lov_magic_v3 = 0x0BD30BD0, lov_raid0 = 1;
constexpr std::uint16_t lov_all = 0xFFFF;
constexpr std::size_t pool_name = 16;

struct LovHead {
    std::uint32_t magic, pattern;
    std::uint64_t object_id, object_seq;
    std::uint32_t stripe_size;
    std::uint16_t stripe_count, stripe_offset;  // when it is read, the generation of the layout
};
struct LovObject {
    std::uint64_t object_id, object_seq;
    std::uint32_t generation, index;
};
static_assert(sizeof(LovHead) == 32 && sizeof(LovObject) == 24);

void append(std::string& bytes, const void* from, std::size_t length) {
    bytes.append(static_cast<const char*>(from), length);
}

std::uint32_t index_of_stripe(const Layout& layout, const SiteModel& site, std::uint32_t stripe) {
    return site.targets[(layout.start + stripe) % site.targets.size()].index;
}

}  // namespace

Layout WantedLayout::over(const Layout& usual, const SiteModel& site) const {
    Layout layout = usual;
    const auto all = static_cast<std::uint32_t>(site.targets.size());
    layout.size = size.value_or(usual.size);
    layout.count = count ? std::min(*count, all) : usual.count;
    if (start) {
        layout.start = all;  // none of that index: the machine refuses it
        for (std::uint32_t i = 0; i < all; ++i) {
            layout.start = site.targets[i].index == *start ? i : layout.start;
        }
    }
    return layout;
}

std::string lov_of(const Layout& layout, const SiteModel& site, std::uint64_t object) {
    LovHead head{};
    head.magic = lov_magic_v1;
    head.pattern = lov_raid0;
    head.object_id = object;
    head.stripe_size = static_cast<std::uint32_t>(layout.size);
    head.stripe_count = static_cast<std::uint16_t>(layout.count);
    std::string bytes;
    append(bytes, &head, sizeof head);
    for (std::uint32_t stripe = 0; stripe < layout.count; ++stripe) {
        const LovObject one{object, 0, 0, index_of_stripe(layout, site, stripe)};
        append(bytes, &one, sizeof one);
    }
    return bytes;
}

std::optional<WantedLayout> from_lov(std::string_view value) {
    LovHead head{};
    if (value.size() < sizeof head) {
        return std::nullopt;
    }
    std::memcpy(&head, value.data(), sizeof head);
    const bool third = head.magic == lov_magic_v3;
    if ((!third && head.magic != lov_magic_v1) || (third && value.size() < sizeof head + pool_name) ||
        (head.pattern != lov_raid0 && head.pattern != 0)) {
        return std::nullopt;
    }
    WantedLayout wanted;
    if (head.stripe_size != 0) {
        wanted.size = head.stripe_size;
    }
    if (head.stripe_count != 0) {
        wanted.count = head.stripe_count == lov_all ? ~0U : head.stripe_count;
    }
    if (head.stripe_offset != lov_all) {
        wanted.start = head.stripe_offset;
    }
    return wanted;
}

std::string text_of(const Layout& layout, const SiteModel& site) {
    std::string text = "stripe_count: " + std::to_string(layout.count) +
                       " stripe_size: " + std::to_string(layout.size) +
                       " stripe_offset: " + std::to_string(index_of_stripe(layout, site, 0)) + " targets: ";
    for (std::uint32_t stripe = 0; stripe < layout.count; ++stripe) {
        text += (stripe > 0 ? "," : "") + std::to_string(index_of_stripe(layout, site, stripe));
    }
    return text;
}

std::optional<WantedLayout> from_text(std::string_view text) {
    std::istringstream words{std::string(text)};
    WantedLayout wanted;
    std::string name, value;
    bool any = false;
    while (words >> name >> value) {
        if (name == "targets:") {
            continue;  // follows from the others
        }
        std::int64_t number = 0;
        const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
        if (error != std::errc{} || end != value.data() + value.size() || number < -1 || number > 0xFFFFFFFFLL) {
            return std::nullopt;
        }
        any = true;
        if (name == "stripe_count:" && number != 0) {
            wanted.count = static_cast<std::uint32_t>(number);
        } else if (name == "stripe_size:" && number > 0) {
            wanted.size = static_cast<std::uint64_t>(number);
        } else if (name == "stripe_offset:" && number >= 0) {
            wanted.start = static_cast<std::uint32_t>(number);
        } else if (name != "stripe_offset:" && !(number == 0 && (name == "stripe_count:" || name == "stripe_size:"))) {
            return std::nullopt;
        }
    }
    return any ? std::optional(wanted) : std::nullopt;
}

}  // namespace sonde::simulate
