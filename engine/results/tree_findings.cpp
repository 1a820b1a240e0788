// SPDX-License-Identifier: Apache-2.0
#include "results/tree_findings.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

namespace sonde::results {
namespace {

using nlohmann::ordered_json;

constexpr std::uint64_t enough_operations = 1000;
constexpr std::size_t enough_slices = 20;

template <class... Values>
std::string format_rate(const char* format, Values... values) {
    std::array<char, 512> text{};
    std::snprintf(text.data(), text.size(), format, values...);
    return text.data();
}

/// Seconds from the start of the phase until `share` of all operations, assuming a constant rate within a slice.
double time_until_operations(const std::vector<SliceSum>& slices, double slice_s, double wanted) {
    double cumulative = 0;
    for (std::size_t i = 0; i < slices.size(); ++i) {
        const auto slice_operations = static_cast<double>(slices[i].operations);
        if (slice_operations > 0 && cumulative + slice_operations >= wanted) {
            return (static_cast<double>(i) + (wanted - cumulative) / slice_operations) * slice_s;
        }
        cumulative += slice_operations;
    }
    return static_cast<double>(slices.size()) * slice_s;
}

ordered_json make_finding(const PhaseCircumstances& circumstances, const char* id, const char* severity,
                          const std::string& text, const std::string& advice, ordered_json evidence) {
    return {{"id", id},         {"phase", circumstances.phase->id}, {"severity", severity}, {"text", text},
            {"advice", advice}, {"evidence", std::move(evidence)}};
}

struct OperationCost {
    double seconds = 0;   ///< of the transfer, summed over tasks
    double system_s = 0;  ///< CPU time in the kernel
    std::uint64_t operations = 0;
    double system_us() const { return system_s * 1e6 / static_cast<double>(operations); }
};

OperationCost compute_cost(const Totals& totals) {
    OperationCost cost;
    cost.operations = totals.file_operations;
    for (const TaskRow& row : totals.rows) {
        cost.system_s += static_cast<double>(row.system_ns) / 1e9;
        cost.seconds += static_cast<double>(row.transfer_ns) / 1e9;
    }
    return cost;
}

/// ext4 does not reuse inodes deleted in the last minutes, and skips them one by one in the bitmap of each group for
/// every new file. This costs hundreds of us of CPU time per create instead of a few, independent of the storage.
void find_recent_deletes(std::vector<ordered_json>& findings, const Totals& totals,
                         const PhaseCircumstances& circumstances) {
    constexpr double suspicious_us = 50;  // a create takes 5 to 15 us of system time on ext4 of today's machines
    const OperationCost cost = compute_cost(totals);
    if (circumstances.phase->op != plan::Op::create || !circumstances.stores_data ||
        circumstances.file_system != "ext4" || cost.operations < enough_operations ||
        cost.system_us() < suspicious_us || cost.system_s < 0.2 * cost.seconds || circumstances.phase->meta->fsync) {
        return;
    }
    const std::string since = circumstances.earlier_removal.empty()
                                  ? std::string("as after a mass delete in the last minutes")
                                  : "after phase " + circumstances.earlier_removal + " removed files";
    findings.push_back(make_finding(
        circumstances, "recent_deletes", "warning",
        format_rate("each create took %.0f us of CPU time in the kernel, ", cost.system_us()) + since +
            ": ext4 passes over recently deleted inodes one by one, so this rate is not that of a file system at rest",
        "wait five minutes after a mass delete, or make the file system anew; repetitions that delete and create again "
        "are not independent",
        {{"system_us_per_create", cost.system_us()},
         {"system_s", cost.system_s},
         {"task_seconds", cost.seconds},
         {"removed_before", circumstances.earlier_removal}}));
}

void find_rate_decline(std::vector<ordered_json>& findings, const Totals& totals,
                       const PhaseCircumstances& circumstances) {
    const std::optional<RateDecline> droop = compute_rate_decline(totals, circumstances.phase->op);
    if (!droop || droop->ratio() > 0.7 || totals.file_operations < 10 * enough_operations) {
        return;
    }
    findings.push_back(make_finding(
        circumstances, "droop", "warning",
        format_rate("the rate fell from %.0f/s for the first tenth of the items to %.0f/s for the last",
                    droop->first_ops_per_s, droop->last_ops_per_s),
        "look at the series: do more items in a directory slow it down, or a cache or journal that is full?",
        {{"first_ops_per_s", droop->first_ops_per_s},
         {"last_ops_per_s", droop->last_ops_per_s},
         {"ratio", droop->ratio()}}));
}

/// Names that this node has just created are cached, unless a treatment emptied the name cache. A treatment without
/// permission, or a fallback for file data only, leaves dentries and inodes.
void find_name_cache_effect(std::vector<ordered_json>& findings, const Totals& totals,
                            const PhaseCircumstances& circumstances) {
    const plan::Op op = circumstances.phase->op;
    const bool looks = plan::operation_info(op).effect == plan::OperationInfo::OperationEffect::inspects;
    if (!looks || !circumstances.stores_data || circumstances.memory_backed || circumstances.dropped_metadata_cache ||
        circumstances.reads_names_of_other_nodes || totals.file_operations == 0) {
        return;
    }
    const bool tried = std::any_of(circumstances.phase->before.begin(), circumstances.phase->before.end(),
                                   [](const auto& t) { return t.kind == "drop_page_cache" || t.kind == "remount"; });
    findings.push_back(
        make_finding(circumstances, "names_cached", "info",
                     std::string("names and attributes that this node made may have come from its memory") +
                         (tried ? ", which the treatment before did not empty on every node" : ""),
                     tried ? "run as root, so that drop_page_cache reaches names too, or shift to another node"
                           : "drop the caches before (treatment drop_page_cache), or shift to another node",
                     {{"treated", tried}}));
}

}  // namespace

std::optional<RateDecline> compute_rate_decline(const Totals& totals, plan::Op op) {
    const std::vector<SliceSum>& slices = totals.sums_of_streams[0].slices;
    const bool changes = op == plan::Op::create || op == plan::Op::remove_items;
    if (!changes || totals.file_operations < enough_operations || slices.size() < enough_slices) {
        return std::nullopt;
    }
    std::uint64_t all = 0;
    for (const SliceSum& slice : slices) {
        all += slice.operations;
    }
    const meters::WorkInterval& transfer = totals.parts_of_work[meters::part_transfer];
    const double slice_s = static_cast<double>(totals.slice_ns) / 1e9;
    const double tenth = static_cast<double>(all) / 10;
    const double begin = static_cast<double>(transfer.first_start_ns) / 1e9;
    const double end = static_cast<double>(transfer.last_end_ns) / 1e9;
    const double first = time_until_operations(slices, slice_s, tenth) - begin;
    const double last = end - time_until_operations(slices, slice_s, 9 * tenth);
    if (first <= 0 || last <= 0) {
        return std::nullopt;
    }
    return RateDecline{tenth / first, tenth / last};
}

std::vector<ordered_json> find_tree_findings(const Totals& totals, const PhaseCircumstances& circumstances) {
    std::vector<ordered_json> findings;
    find_recent_deletes(findings, totals, circumstances);
    find_rate_decline(findings, totals, circumstances);
    find_name_cache_effect(findings, totals, circumstances);
    return findings;
}

}  // namespace sonde::results
