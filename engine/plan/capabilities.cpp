// SPDX-License-Identifier: Apache-2.0
#include "plan/capabilities.hpp"

#include <algorithm>

namespace sonde::plan {
namespace {

template <class Rule>
const Rule* find_by_name(const std::vector<Rule>& rules, std::string_view name) {
    const auto row = std::find_if(rules.begin(), rules.end(), [name](const Rule& rule) { return rule.name == name; });
    return row == rules.end() ? nullptr : &*row;
}

}  // namespace

const BackendCapability* Capabilities::find_backend(std::string_view name) const {
    return find_by_name(backends, name);
}

const TreatmentCapability* Capabilities::find_treatment(std::string_view name) const {
    return find_by_name(treatments, name);
}

BackendTraits Capabilities::find_traits(std::string_view name) const {
    const BackendCapability* rule = find_backend(name);
    return rule == nullptr ? BackendTraits{} : rule->traits;
}

std::string Capabilities::list_backends_with(bool BackendTraits::*trait) const {
    // A target of one kind is no target of the other, so objects are no advice for files.
    const bool of_objects = trait == &BackendTraits::stores_objects;
    std::string names;
    for (const BackendCapability& rule : backends) {
        if (rule.traits.*trait && rule.traits.stores_data && rule.traits.stores_objects == of_objects) {
            names += (names.empty() ? "" : " or ") + std::string(rule.name);
        }
    }
    return names;
}

}  // namespace sonde::plan
