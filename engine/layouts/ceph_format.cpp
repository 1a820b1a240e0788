// SPDX-License-Identifier: Apache-2.0
#include "layouts/ceph_format.hpp"

#include "layouts/text_fields.hpp"

#include <algorithm>

namespace sonde::layouts {

CephStripes parse_ceph_stripes(std::string_view value) {
    CephStripes stripes;
    for (std::size_t begin = 0; begin < value.size();) {
        const std::size_t end = std::min(value.find_first_of(std::string_view(" \0", 2), begin), value.size());
        const std::string_view word = value.substr(begin, end - begin);
        const std::size_t sign = std::min(word.find('='), word.size());
        const std::string_view name = word.substr(0, sign);
        const std::string_view setting = word.substr(std::min(sign + 1, word.size()));
        if (name == "stripe_unit") {
            stripes.unit = parse_number(setting).value_or(0);
        } else if (name == "stripe_count") {
            stripes.count = parse_number(setting).value_or(0);
        } else if (name == "object_size") {
            stripes.object = parse_number(setting).value_or(0);
        } else if (name == "pool") {
            stripes.pool = setting;
        } else if (name == "pool_namespace") {
            stripes.space = setting;
        }
        begin = end + 1;
    }
    if (stripes.unit == 0 || stripes.count == 0 || stripes.pool.empty()) {
        throw_invalid_layout("CephFS", "lacks stripe_unit, stripe_count or pool");
    }
    return stripes;
}

StripeLayout parse_ceph_layout(std::string_view value) {
    const CephStripes stripes = parse_ceph_stripes(value);
    StripeLayout layout;
    LayoutComponent& component = add_single_component(layout, "ceph");
    component.stripe_bytes = stripes.unit;
    component.requested_stripes = static_cast<std::uint32_t>(stripes.count);
    component.pool = stripes.pool;
    component.targets = {"pool " + stripes.pool};
    return layout;
}

std::string encode_ceph_striping(const plan::Striping& requested) {
    constexpr plan::Bytes usual_object = 4U << 20U;
    std::string encoded;
    const auto add = [&encoded](const std::string& setting) { encoded += (encoded.empty() ? "" : " ") + setting; };
    if (requested.size) {
        // Objects hold whole stripe units: the usual 4 MiB, or the next multiple above.
        const plan::Bytes object = (usual_object + *requested.size - 1) / *requested.size * *requested.size;
        add("stripe_unit=" + std::to_string(*requested.size));
        add("object_size=" + std::to_string(object));
    }
    if (requested.count) {
        add("stripe_count=" + std::to_string(*requested.count));
    }
    if (!requested.pool.empty()) {
        add("pool=" + requested.pool);
    }
    return encoded;
}

}  // namespace sonde::layouts
