// SPDX-License-Identifier: Apache-2.0
#include "results/finding_list.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

namespace sonde::results {

using nlohmann::ordered_json;

std::string format_number(const char* format, double value) {
    std::array<char, 256> text{};
    std::snprintf(text.data(), text.size(), format, value);
    return text.data();
}

double compute_elapsed(const Totals& totals) {
    double longest = 0;
    for (const meters::WorkInterval& part : totals.parts_of_work) {
        longest = std::max(longest, static_cast<double>(part.last_end_ns) / 1e9);
    }
    return longest;
}

void FindingList::add(const char* id, const char* severity, const std::string& text, const std::string& advice,
                      ordered_json evidence) {
    list_.push_back({{"id", id},
                     {"phase", phase_},
                     {"severity", severity},
                     {"text", text},
                     {"advice", advice},
                     {"evidence", std::move(evidence)}});
}

std::vector<ordered_json> FindingList::to_sorted_list() {
    const auto rank = [](const ordered_json& f) {
        return f.at("severity") == "invalid" ? 0 : f.at("severity") == "warning" ? 1 : 2;
    };
    std::stable_sort(list_.begin(), list_.end(), [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
    return std::move(list_);
}

}  // namespace sonde::results
