// SPDX-License-Identifier: Apache-2.0
#include "results/targets.hpp"

#include <algorithm>
#include <cmath>

namespace sonde::results {

using meters::TargetBoard;
using meters::TargetCell;
using meters::TargetLatency;
using nlohmann::json;

namespace {

TargetStatistics make_counts(const TargetBoard::DirectionCounts& kind) {
    TargetStatistics counts;
    counts.longest_ns = kind.longest_ns.load();
    for (std::uint32_t bucket = 0; bucket < kind.latency.size(); ++bucket) {
        if (const std::uint64_t count = kind.latency[bucket].load(); count > 0) {
            counts.operations_by_latency_bucket[bucket] = count;
        }
    }
    for (std::size_t row = 0; row < kind.cells.size(); ++row) {
        const TargetBoard::AtomicTargetCell& from = kind.cells[row];
        const TargetCell cell{from.bytes.load(), from.single_ops.load(), from.single_ns.load(), from.split_ops.load()};
        if (cell.is_used()) {
            counts.slices.resize(row + 1);
            counts.slices[row] = cell;
        }
    }
    return counts;
}

void merge_counts(TargetStatistics& into, const TargetStatistics& from) {
    into.longest_ns = std::max(into.longest_ns, from.longest_ns);
    for (const auto& [bucket, count] : from.operations_by_latency_bucket) {
        into.operations_by_latency_bucket[bucket] += count;
    }
    into.slices.resize(std::max(into.slices.size(), from.slices.size()));
    for (std::size_t i = 0; i < from.slices.size(); ++i) {
        into.slices[i].add(from.slices[i]);
    }
}

}  // namespace

TargetCell TargetStatistics::sum_slices() const {
    TargetCell all;
    for (const TargetCell& slice : slices) {
        all.add(slice);
    }
    return all;
}

std::uint64_t TargetStatistics::quantile(double q) const {
    std::uint64_t all = 0;
    for (const auto& [bucket, count] : operations_by_latency_bucket) {
        all += count;
    }
    const auto wanted = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::ceil(q * static_cast<double>(all))));
    std::uint64_t cumulative = 0;
    for (const auto& [bucket, count] : operations_by_latency_bucket) {
        cumulative += count;
        if (cumulative >= wanted) {
            const std::uint64_t low = TargetLatency::bucket_begin(bucket);
            return std::min(longest_ns, low + (TargetLatency::bucket_begin(bucket + 1) - 1 - low) / 2);
        }
    }
    return 0;
}

TargetTotals TargetTotals::from_board(const TargetBoard& board, std::int64_t slice_ns) {
    TargetTotals targets;
    targets.slice_ns = slice_ns;
    targets.opened_files = board.opened_files.load();
    targets.known_layouts = board.known_layouts.load();
    for (const TargetBoard::TargetSlot& target : board.targets) {
        if (target.state.load(std::memory_order_acquire) == 2) {
            auto& into = targets.statistics_by_target[target.name.data()];
            for (unsigned kind = 0; kind < 2; ++kind) {
                merge_counts(into[kind], make_counts(target.counts_by_kind[kind]));
            }
        }
    }
    return targets;
}

void TargetTotals::merge(const TargetTotals& other) {
    slice_ns = std::max(slice_ns, other.slice_ns);
    opened_files += other.opened_files;
    known_layouts += other.known_layouts;
    for (const auto& [name, counts] : other.statistics_by_target) {
        auto& into = statistics_by_target[name];
        for (unsigned kind = 0; kind < 2; ++kind) {
            merge_counts(into[kind], counts[kind]);
        }
    }
}

std::uint64_t TargetTotals::sum_bytes(unsigned kind) const {
    std::uint64_t all = 0;
    for (const auto& [name, counts] : statistics_by_target) {
        all += counts[kind].sum_slices().bytes;
    }
    return all;
}

json TargetTotals::pack() const {
    json out{{"w", slice_ns}, {"f", {opened_files, known_layouts}}, {"t", json::array()}};
    for (const auto& [name, both] : statistics_by_target) {
        json target = json::array({name});
        for (const TargetStatistics& counts : both) {
            json latency = json::array();
            for (const auto& [bucket, count] : counts.operations_by_latency_bucket) {
                latency.insert(latency.end(), {bucket, count});
            }
            json slices = json::array();
            for (const TargetCell& cell : counts.slices) {
                slices.insert(slices.end(), {cell.bytes, cell.single_ops, cell.single_ns, cell.split_ops});
            }
            target.push_back({counts.longest_ns, std::move(latency), std::move(slices)});
        }
        out["t"].push_back(std::move(target));
    }
    return out;
}

TargetTotals TargetTotals::unpack(const json& packed) {
    TargetTotals targets;
    targets.slice_ns = packed.at("w");
    targets.opened_files = packed.at("f").at(0);
    targets.known_layouts = packed.at("f").at(1);
    for (const json& target : packed.at("t")) {
        auto& into = targets.statistics_by_target[target.at(0).get<std::string>()];
        for (unsigned kind = 0; kind < 2; ++kind) {
            const json& from = target.at(kind + 1);
            into[kind].longest_ns = from.at(0);
            for (std::size_t i = 0; i + 1 < from.at(1).size(); i += 2) {
                into[kind].operations_by_latency_bucket[from.at(1).at(i)] = from.at(1).at(i + 1);
            }
            for (std::size_t i = 0; i + 3 < from.at(2).size(); i += 4) {
                into[kind].slices.push_back(
                    {from.at(2).at(i), from.at(2).at(i + 1), from.at(2).at(i + 2), from.at(2).at(i + 3)});
            }
        }
    }
    return targets;
}

}  // namespace sonde::results
