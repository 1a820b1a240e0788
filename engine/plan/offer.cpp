// SPDX-License-Identifier: Apache-2.0
#include "plan/offer.hpp"

#include <algorithm>

namespace sonde::plan {
namespace {

template <class Rule>
const Rule* named(const std::vector<Rule>& rules, std::string_view name) {
    const auto found = std::find_if(rules.begin(), rules.end(), [name](const Rule& rule) { return rule.name == name; });
    return found == rules.end() ? nullptr : &*found;
}

}  // namespace

const BackendRule* Offer::backend(std::string_view name) const {
    return named(backends, name);
}

const TreatmentRule* Offer::treatment(std::string_view name) const {
    return named(treatments, name);
}

Traits Offer::traits_of(std::string_view name) const {
    const BackendRule* rule = backend(name);
    return rule == nullptr ? Traits{} : rule->traits;
}

std::string Offer::backends_with(bool Traits::*trait) const {
    std::string names;
    for (const BackendRule& rule : backends) {
        if (rule.traits.*trait && rule.traits.stores_data) {
            names += (names.empty() ? "" : " or ") + std::string(rule.name);
        }
    }
    return names;
}

}  // namespace sonde::plan
