// SPDX-License-Identifier: Apache-2.0
// The one list of dialects: declare yours, and add it to `all`.
#include "dialects/dialect.hpp"

#include <algorithm>

namespace sonde::dialects {

extern const Dialect ior_dialect;
extern const Dialect md_workbench_dialect;
extern const Dialect mdtest_dialect;

std::span<const Dialect* const> list_dialects() {
    static const std::vector<const Dialect*> all{&ior_dialect, &mdtest_dialect, &md_workbench_dialect};
    return all;
}

const Dialect* find_dialect(std::string_view name) {
    const auto all = list_dialects();
    const auto match =
        std::find_if(all.begin(), all.end(), [name](const Dialect* dialect) { return dialect->name == name; });
    return match == all.end() ? nullptr : *match;
}

}  // namespace sonde::dialects
