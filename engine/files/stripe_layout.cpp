// SPDX-License-Identifier: Apache-2.0
// The binary form is that of lustre_user.h (struct lov_user_md_v1, _v3, lov_comp_md_v1), which client and server share:
// packed, little endian. Read by place, not by casting: what comes from outside may end anywhere.
#include "files/stripe_layout.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <stdexcept>

namespace sonde::files {
namespace {

using Pattern = LayoutComponent::Pattern;

constexpr std::uint32_t magic_composite = 0x0BD60BD0, magic_foreign = 0x0BD70BD0;
constexpr std::uint32_t pattern_mdt = 0x100, pattern_released = 0x80000000;
constexpr std::uint32_t entry_stale = 0x1;
constexpr std::size_t head_v1 = 32, head_v3 = 48, object_bytes = 24;
constexpr std::size_t head_composite = 32, entry_bytes = 48;
constexpr std::uint32_t any_target = 0xffffffff;

[[noreturn]] void refuse(const std::string& why) {
    throw std::invalid_argument("the layout attribute of the file " + why);
}

/// A piece of bytes that is read by place.
class Bytes {
 public:
    explicit Bytes(std::string_view all) : all_(all) {}
    template <class T>
    T at(std::size_t position) const {
        if (position > all_.size() || all_.size() - position < sizeof(T)) {
            refuse("ends after " + std::to_string(all_.size()) + " bytes, before its number at " +
                   std::to_string(position));
        }
        T value = 0;
        for (std::size_t i = 0; i < sizeof(T); ++i) {
            value = static_cast<T>(
                value | static_cast<T>(static_cast<T>(static_cast<unsigned char>(all_[position + i])) << (8 * i)));
        }
        return value;
    }
    Bytes part(std::size_t position, std::size_t length) const {
        if (position > all_.size() || all_.size() - position < length) {
            refuse("names a part outside its " + std::to_string(all_.size()) + " bytes");
        }
        return Bytes(all_.substr(position, length));
    }
    std::string word(std::size_t position, std::size_t length) const {
        const std::string_view text = part(position, length).all_;
        return std::string(text.substr(0, std::min(text.find('\0'), text.size())));
    }
    std::size_t size() const { return all_.size(); }

 private:
    std::string_view all_;
};

/// lov_user_md_v1 or _v3.
LayoutComponent plain_component(const Bytes& bytes) {
    const auto magic = bytes.at<std::uint32_t>(0);
    if (magic != lov_magic_v1 && magic != lov_magic_v3) {
        std::array<char, 16> text{};
        std::snprintf(text.data(), text.size(), "0x%08x", magic);
        refuse(std::string("begins with the unknown number ") + text.data());
    }
    const auto pattern = bytes.at<std::uint32_t>(4);
    LayoutComponent component;
    component.pattern = (pattern & pattern_released) != 0 ? Pattern::released
                        : (pattern & pattern_mdt) != 0    ? Pattern::metadata_server
                                                          : Pattern::raid0;
    component.stripe = bytes.at<std::uint32_t>(24);
    component.count = bytes.at<std::uint16_t>(28);
    const std::size_t head = magic == lov_magic_v3 ? head_v3 : head_v1;
    if (magic == lov_magic_v3) {
        component.pool = bytes.word(head_v1, lov_pool_bytes);
    }
    // A component without data has a count and no objects.
    const bool chosen = component.pattern == Pattern::raid0 && bytes.size() > head;
    for (std::size_t i = 0; chosen && i < component.count; ++i) {
        const auto index = bytes.at<std::uint32_t>(head + i * object_bytes + 20);
        component.targets.push_back(index == any_target ? "?" : target_name(index));
    }
    if (chosen && component.stripe == 0) {
        refuse("has stripes of 0 bytes");
    }
    return component;
}

StripeLayout composite(const Bytes& bytes) {
    StripeLayout layout;
    layout.kind = "lustre";
    const auto entries = bytes.at<std::uint16_t>(14);
    layout.mirrors = bytes.at<std::uint16_t>(16) + 1U;
    for (std::size_t i = 0; i < entries; ++i) {
        const std::size_t entry = head_composite + i * entry_bytes;
        const auto start = bytes.at<std::uint64_t>(entry + 8);
        const auto end = bytes.at<std::uint64_t>(entry + 16);
        const Bytes part = bytes.part(bytes.at<std::uint32_t>(entry + 24), bytes.at<std::uint32_t>(entry + 28));
        LayoutComponent component;
        if (part.at<std::uint32_t>(0) == magic_foreign) {
            component.pattern = Pattern::foreign;
        } else {
            component = plain_component(part);
        }
        component.start = start;
        component.end = end;
        component.stale = (bytes.at<std::uint32_t>(entry + 4) & entry_stale) != 0;
        if (end <= start) {
            refuse("has a component that ends before it begins");
        }
        layout.components.push_back(std::move(component));
    }
    return layout;
}

/// Bytes of stripe `k` of `count` in [0, end).
std::uint64_t stripe_bytes_below(std::uint64_t end, std::uint64_t stripe, std::uint64_t count, std::uint64_t k) {
    const std::uint64_t width = stripe * count;  // 32 bits by 16: fits
    const std::uint64_t remainder = end % width;
    const std::uint64_t before = k * stripe;
    return end / width * stripe + (remainder > before ? std::min(remainder - before, stripe) : 0);
}

}  // namespace

std::string target_name(std::uint32_t index) {
    std::array<char, 16> name{};
    std::snprintf(name.data(), name.size(), "OST%04x", index);
    return name.data();
}

StripeLayout parse_lustre_layout(std::string_view value) {
    const Bytes bytes(value);
    const auto magic = bytes.at<std::uint32_t>(0);
    if (magic == magic_composite) {
        return composite(bytes);
    }
    StripeLayout layout;
    layout.kind = "lustre";
    if (magic == magic_foreign) {
        layout.components.emplace_back().pattern = Pattern::foreign;
    } else {
        layout.components.push_back(plain_component(bytes));
    }
    return layout;
}

std::uint64_t bytes_in_gluster_words(std::string_view text) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
    constexpr std::array<std::string_view, 5> units{"", "KB", "MB", "GB", "TB"};
    const auto* const match = std::find(units.begin(), units.end(), unit);
    return error != std::errc() || match == units.end() ? 0 : value << (10 * (match - units.begin()));
}

StripeLayout parse_gluster_layout(std::string_view value, std::uint64_t shard) {
    StripeLayout layout;
    layout.kind = "gluster";
    LayoutComponent& first = layout.components.emplace_back();
    first.pattern = Pattern::whole;
    // (<DISTRIBUTE:v-dht> (<REPLICATE:v-replicate-0> <POSIX(/bricks/1):server1:/bricks/1/f> <POSIX(/bricks/2):…>))
    constexpr std::string_view mark = "<POSIX(";
    for (std::size_t position = value.find(mark); position != std::string_view::npos;
         position = value.find(mark, position + 1)) {
        const std::size_t brick = position + mark.size();
        const std::size_t closed = value.find("):", brick);
        const std::size_t colon = closed == std::string_view::npos ? closed : value.find(':', closed + 2);
        if (colon == std::string_view::npos) {
            refuse("names a brick without its server");
        }
        first.targets.push_back(std::string(value.substr(closed + 2, colon - closed - 2)) + ":" +
                                std::string(value.substr(brick, closed - brick)));
    }
    if (first.targets.empty()) {
        refuse("names no brick");
    }
    first.count = static_cast<std::uint32_t>(first.targets.size());
    if (shard > 0) {
        first.end = shard;
        LayoutComponent& others = layout.components.emplace_back();
        others.start = shard;
        others.pattern = Pattern::foreign;
    }
    return layout;
}

std::map<std::string, std::uint64_t> bytes_on_targets(const StripeLayout& layout, std::uint64_t size) {
    std::map<std::string, std::uint64_t> bytes_on;
    const auto put = [&bytes_on](const std::string& target, std::uint64_t bytes) {
        if (bytes > 0) {
            bytes_on[target] += bytes;
        }
    };
    for (const LayoutComponent& component : layout.components) {
        const std::uint64_t end = std::min(size, component.end);
        if (component.stale || end <= component.start) {
            continue;
        }
        const std::size_t count = component.targets.size();
        if (count == 0) {
            put(component.pattern == Pattern::metadata_server ? "MDT" : "?", end - component.start);
        }
        for (std::size_t k = 0; k < count; ++k) {
            put(component.targets[k],
                component.stripe == 0
                    ? end - component.start
                    : stripe_bytes_below(end + component.shift, component.stripe, count, k) -
                          stripe_bytes_below(component.start + component.shift, component.stripe, count, k));
        }
    }
    return bytes_on;
}

std::vector<std::string> targets_of_byte(const StripeLayout& layout, std::uint64_t offset) {
    std::vector<std::string> names;
    for (const LayoutComponent& component : layout.components) {
        if (component.stale || offset < component.start || offset >= component.end) {
            continue;
        }
        const std::size_t count = component.targets.size();
        if (count == 0) {
            names.emplace_back(component.pattern == Pattern::metadata_server ? "MDT" : "?");
        } else if (component.stripe == 0) {
            names.insert(names.end(), component.targets.begin(), component.targets.end());
        } else {
            names.push_back(component.targets[(offset + component.shift) / component.stripe % count]);
        }
    }
    return names;
}

const char* pattern_word(Pattern pattern) {
    constexpr std::array names{"raid0", "mdt", "released", "foreign", "whole"};
    return names[static_cast<std::size_t>(pattern)];
}

}  // namespace sonde::files
