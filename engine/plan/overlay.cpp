// SPDX-License-Identifier: Apache-2.0
#include "plan/overlay.hpp"

#include <array>

namespace sonde::plan {
namespace {

/// `member` excludes `replaced`, so a merge with `member` removes `replaced`. `instead_of` in schema/plan.
struct Replacement {
    const char* member;
    const char* replaced;
};
constexpr std::array replacements{Replacement{"segments", "volume"},
                                  Replacement{"volume", "segments"},
                                  Replacement{"items_per_dir", "items_per_task"},
                                  Replacement{"items_per_task", "items_per_dir"},
                                  Replacement{"size", "size_min"},
                                  Replacement{"size", "size_max"},
                                  Replacement{"size_min", "size"},
                                  Replacement{"size_max", "size"},
                                  Replacement{"newer_than", "newer_than_file"},
                                  Replacement{"newer_than_file", "newer_than"}};

}  // namespace

nlohmann::json overlay_members(const nlohmann::json& base, const nlohmann::json& members) {
    nlohmann::json merged = base.is_object() ? base : nlohmann::json::object();
    for (const Replacement& replacement : replacements) {
        if (members.contains(replacement.member)) {
            merged.erase(replacement.replaced);
        }
    }
    merged.update(members);
    return merged;
}

}  // namespace sonde::plan
