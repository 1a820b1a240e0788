// SPDX-License-Identifier: Apache-2.0
#include "plan/overlay.hpp"

#include <array>

namespace sonde::plan {
namespace {

/// `member` is given instead of `other`, so laid over a table it takes that one away. `instead_of` in schema/plan.
struct Instead {
    const char* member;
    const char* other;
};
constexpr std::array instead_of{Instead{"segments", "volume"},
                                Instead{"volume", "segments"},
                                Instead{"items_per_dir", "items_per_task"},
                                Instead{"items_per_task", "items_per_dir"},
                                Instead{"size", "size_min"},
                                Instead{"size", "size_max"},
                                Instead{"size_min", "size"},
                                Instead{"size_max", "size"},
                                Instead{"newer_than", "newer_than_file"},
                                Instead{"newer_than_file", "newer_than"}};

}  // namespace

nlohmann::json laid_over(const nlohmann::json& base, const nlohmann::json& own) {
    nlohmann::json merged = base.is_object() ? base : nlohmann::json::object();
    for (const Instead& one : instead_of) {
        if (own.contains(one.member)) {
            merged.erase(one.other);
        }
    }
    merged.update(own);
    return merged;
}

}  // namespace sonde::plan
