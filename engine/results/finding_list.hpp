// SPDX-License-Identifier: Apache-2.0
// The findings about one phase while they are collected, and what their sentences and limits share.
#pragma once

#include "results/summary.hpp"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace sonde::results {

/// Formats one number as printf does.
std::string format_number(const char* format, double value);

/// Seconds from the start of a phase to its end.
double compute_elapsed(const Totals& totals);

/// Findings in the form of the record's `finding` line.
class FindingList {
 public:
    explicit FindingList(const std::string& phase) : phase_(phase) {}
    void add(const char* id, const char* severity, const std::string& text, const std::string& advice,
             nlohmann::ordered_json evidence);
    /// Returns all findings, most severe first, and empties the list.
    std::vector<nlohmann::ordered_json> to_sorted_list();

 private:
    std::string phase_;
    std::vector<nlohmann::ordered_json> list_;
};

}  // namespace sonde::results
