// SPDX-License-Identifier: Apache-2.0
#include "meters/target_board.hpp"

#include <sched.h>
#include <algorithm>
#include <cstring>
#include <functional>
#include <new>

namespace sonde::meters {
namespace {

constexpr auto relaxed = std::memory_order_relaxed;

void add_to(std::atomic<std::uint64_t>& sum, std::uint64_t value) noexcept {
    if (value != 0) {
        sum.fetch_add(value, relaxed);
    }
}

void raise_maximum(std::atomic<std::uint64_t>& most, std::uint64_t value) noexcept {
    std::uint64_t current = most.load(relaxed);
    while (current < value && !most.compare_exchange_weak(current, value, relaxed)) {
    }
}

}  // namespace

/// From the place that the name gives on, the first that is free or has that name.
TargetBoard::TargetSlot* TargetBoard::find_or_add_slot(std::string_view name) noexcept {
    const std::string_view short_name = name.substr(0, longest_name);
    const std::size_t first = std::hash<std::string_view>()(short_name) % targets.size();
    for (std::size_t i = 0; i < targets.size(); ++i) {
        TargetSlot& target = targets[(first + i) % targets.size()];
        std::uint32_t state = 0;
        if (target.state.compare_exchange_strong(state, 1, std::memory_order_acquire)) {
            std::memcpy(target.name.data(), short_name.data(), short_name.size());
            target.name[short_name.size()] = '\0';
            target.state.store(2, std::memory_order_release);
            return &target;
        }
        // The process that writes the name may have been killed: then the name gets another slot; sums are joined by
        // name.
        for (int turns = 0; state == 1 && turns < 100'000; ++turns) {
            sched_yield();
            state = target.state.load(std::memory_order_acquire);
        }
        if (state == 2 && short_name == target.name.data()) {
            return &target;
        }
    }
    return nullptr;
}

void TargetBoard::add(const TargetsServed& stream, std::uint32_t doublings) noexcept {
    opened_files.fetch_add(stream.opened_files, relaxed);
    known_layouts.fetch_add(stream.known_layouts, relaxed);
    if (stream.meter != nullptr) {
        add(*stream.meter, doublings);
    }
}

void TargetBoard::add(const TargetMeter& meter, std::uint32_t doublings) noexcept {
    const std::uint32_t fold = doublings - std::min(doublings, meter.doublings());
    for (std::uint32_t t = 0; t < meter.names().size(); ++t) {
        TargetSlot* const target = find_or_add_slot(meter.names()[t]);
        for (unsigned k = 0; target != nullptr && k < 2; ++k) {
            DirectionCounts& kind = target->counts_by_kind[k];
            raise_maximum(kind.longest_ns, meter.longest_ns(k, t));
            for (std::size_t bucket = 0; bucket < TargetLatency::buckets; ++bucket) {
                add_to(kind.latency[bucket], meter.latencies(k, bucket, t));
            }
            for (std::uint32_t row = 0; row < meter.rows(); ++row) {
                const TargetCell& from = meter.cell(k, row, t);
                AtomicTargetCell& into = kind.cells[std::min(row >> fold, TargetMeter::max_rows - 1)];
                add_to(into.bytes, from.bytes);
                add_to(into.single_ops, from.single_ops);
                add_to(into.single_ns, from.single_ns);
                add_to(into.split_ops, from.split_ops);
            }
        }
    }
}

void TargetBoard::clear() noexcept {
    opened_files.store(0, relaxed);
    known_layouts.store(0, relaxed);
    for (TargetSlot& target : targets) {
        if (target.state.load(relaxed) != 0) {
            std::memset(static_cast<void*>(&target), 0, sizeof target);
        }
    }
}

}  // namespace sonde::meters
