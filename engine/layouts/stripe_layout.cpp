// SPDX-License-Identifier: Apache-2.0
#include "layouts/stripe_layout.hpp"

#include <algorithm>
#include <array>

namespace sonde::layouts {
namespace {

using Pattern = LayoutComponent::Pattern;

/// Bytes of stripe `k` of `count` in [0, end).
std::uint64_t stripe_bytes_below(std::uint64_t end, std::uint64_t stripe, std::uint64_t count, std::uint64_t k) {
    const std::uint64_t width = stripe * count;  // 32 bits by 16: fits
    const std::uint64_t remainder = end % width;
    const std::uint64_t before = k * stripe;
    return end / width * stripe + (remainder > before ? std::min(remainder - before, stripe) : 0);
}

}  // namespace

LayoutComponent& add_single_component(StripeLayout& layout, const char* kind) {
    layout.kind = kind;
    return layout.components.emplace_back();
}

std::map<std::string, std::uint64_t> compute_bytes_by_target(const StripeLayout& layout, std::uint64_t size) {
    std::map<std::string, std::uint64_t> bytes_on;
    const auto add = [&bytes_on](const std::string& target, std::uint64_t bytes) {
        if (bytes > 0) {
            bytes_on[target] += bytes;
        }
    };
    for (const LayoutComponent& component : layout.components) {
        const std::uint64_t end = std::min(size, component.end);
        if (component.is_stale || end <= component.start) {
            continue;
        }
        const std::size_t count = component.targets.size();
        if (count == 0) {
            add(component.pattern == Pattern::metadata_server ? "MDT" : "?", end - component.start);
        }
        for (std::size_t k = 0; k < count; ++k) {
            add(component.targets[k],
                component.stripe_bytes == 0
                    ? end - component.start
                    : stripe_bytes_below(end + component.shift_bytes, component.stripe_bytes, count, k) -
                          stripe_bytes_below(component.start + component.shift_bytes, component.stripe_bytes, count,
                                             k));
        }
    }
    return bytes_on;
}

std::vector<std::string> find_targets_of_byte(const StripeLayout& layout, std::uint64_t offset) {
    std::vector<std::string> names;
    for (const LayoutComponent& component : layout.components) {
        if (component.is_stale || offset < component.start || offset >= component.end) {
            continue;
        }
        const std::size_t count = component.targets.size();
        if (count == 0) {
            names.emplace_back(component.pattern == Pattern::metadata_server ? "MDT" : "?");
        } else if (component.stripe_bytes == 0) {
            names.insert(names.end(), component.targets.begin(), component.targets.end());
        } else {
            names.push_back(component.targets[(offset + component.shift_bytes) / component.stripe_bytes % count]);
        }
    }
    return names;
}

const char* pattern_name(Pattern pattern) {
    constexpr std::array names{"raid0", "mdt", "released", "foreign", "whole"};
    return names[static_cast<std::size_t>(pattern)];
}

}  // namespace sonde::layouts
