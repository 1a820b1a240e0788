// SPDX-License-Identifier: Apache-2.0
#include "runs/footprint.hpp"

#include "backends/backend.hpp"
#include "files/file_map.hpp"
#include "files/segments.hpp"
#include "meters/stream_meter.hpp"
#include "patterns/operation_list.hpp"
#include "patterns/tree.hpp"
#include "payload/payload.hpp"
#include "plan/check_data.hpp"
#include "plan/plan_error.hpp"
#include "plan/uint128.hpp"
#include "plan/units.hpp"

#include <sys/stat.h>
#include <algorithm>
#include <map>
#include <vector>

namespace sonde::runs {
namespace {

constexpr uint128 largest_file = uint128{1} << 62U;

/// Indices of each task's files that a phase uses; empty = all.
std::vector<int> count_files(const plan::Phase& phase) {
    if (phase.op != plan::Op::duplex) {
        return phase.files;
    }
    std::vector<int> written;
    for (const plan::DuplexStream& stream : phase.streams) {
        if (stream.write) {
            written.push_back(stream.file);
        }
    }
    return written;
}

uint128 compute_file_bytes(const plan::Phase& phase, const files::TaskMap& tasks, std::uint64_t node_memory) {
    return static_cast<uint128>(files::segments_of(phase, tasks, node_memory)) * phase.data.access.block;
}

void check_offsets(const plan::Phase& phase, const files::TaskMap& tasks, std::uint64_t node_memory) {
    const std::uint64_t segments = files::segments_of(phase, tasks, node_memory);
    if (!plan::fits_in_file(phase.data, segments, static_cast<std::uint64_t>(tasks.tasks()))) {
        throw plan::PlanError("plan: phase \"" + phase.id +
                              "\" reaches beyond the largest file (4 EiB): check volume, " +
                              "stride, gap and offset, and the number of tasks");
    }
}

void check_total(const plan::Phase& phase, const files::TaskMap& tasks, std::uint64_t node_memory) {
    const std::vector<int> used = count_files(phase);
    const auto per_task = static_cast<std::uint64_t>(phase.data.files.mapping != plan::Mapping::many ? 1
                                                     : used.empty() ? phase.data.files.count
                                                                    : static_cast<int>(used.size()));
    const uint128 files = static_cast<uint128>(tasks.tasks()) * per_task;
    if (compute_file_bytes(phase, tasks, node_memory) > largest_file / files) {
        throw plan::PlanError("plan: phase \"" + phase.id + "\" would " + (plan::writes(phase.op) ? "write" : "read") +
                              " more than 4 EiB: check block, segments, volume and files.count");
    }
}

/// Checks the memory for buffers and meters, so that the run fails here and not by the kernel's OOM killer.
void check_memory(const plan::Plan& plan, const plan::Phase& phase, const files::TaskMap& tasks,
                  std::uint64_t node_memory) {
    int most = 1;
    for (int node = 0; node < tasks.nodes(); ++node) {
        most = std::max(most, tasks.tasks_on(node));
    }
    const plan::Access& a = phase.data.access;
    const std::uint64_t period = payload::choose_payload_period(phase.data.payload, a.transfer);
    const auto depth = static_cast<std::uint64_t>(phase.data.io.queue_depth);
    const payload::PayloadImage::BaseStorage holds =
        payload::PayloadImage::choose_base_storage(period, a.transfer, depth * static_cast<unsigned>(most));
    const std::uint64_t image = payload::PayloadImage::memory_for(period, a.transfer, holds);
    const uint128 slot = (plan::writes(phase.op) ? image : 0) + (plan::reads(phase.op) ? a.transfer : 0);
    constexpr unsigned kinds = 5;  // largest number of operation kinds of one stream
    const uint128 of_task = slot * depth + meters::StreamMeter::max_memory_bytes(plan.observe.max_slices, kinds);
    const uint128 task_count = of_task * static_cast<unsigned>(most);
    if (task_count > static_cast<uint128>(node_memory) / 10 * 9) {
        const auto displayed = static_cast<std::uint64_t>(std::min<uint128>(task_count, UINT64_MAX));
        throw plan::PlanError("plan: phase \"" + phase.id + "\" needs " + plan::format_bytes(displayed) +
                              " of buffers and meters on a node that has " + plan::format_bytes(node_memory) +
                              ": use a smaller transfer, queue_depth or observe.max_slices, or fewer tasks");
    }
}

/// The list of operations that a phase replays must be for these tasks and files, and its buffers long enough.
void check_replay_list(const plan::Phase& phase, const files::TaskMap& tasks) {
    const patterns::OperationListHeader header = patterns::check_operation_list(phase.replay_file);
    const std::string begin = "plan: phase \"" + phase.id + "\": " + phase.replay_file + " is for ";
    if (header.tasks != static_cast<std::uint32_t>(tasks.tasks())) {
        throw plan::PlanError(begin + std::to_string(header.tasks) + " tasks, but the run has " +
                              std::to_string(tasks.tasks()) + ": set tasks.processes and tasks.threads to that number");
    }
    if (header.files != static_cast<std::uint32_t>(phase.data.files.count)) {
        throw plan::PlanError(begin + std::to_string(header.files) + " files: set data.files.count to that number");
    }
    if (header.largest_transfer > phase.data.access.transfer) {
        throw plan::PlanError(begin + "operations of up to " + std::to_string(header.largest_transfer) +
                              " B: set data.access.transfer to that length");
    }
}

/// All phases replay on the same files.
Footprint compute_replay_footprint(const plan::Plan& plan) {
    Footprint most;
    for (const plan::Phase& phase : plan.phases) {
        const patterns::OperationListHeader header = patterns::read_operation_list_header(phase.replay_file);
        most.bytes = std::max(most.bytes, header.file_bytes);
        most.file_count = header.files;
    }
    return most;
}

/// Largest number of items and bytes in trees at one time: created minus removed ones.
Footprint compute_tree_footprint(const plan::Plan& plan, const files::TaskMap& tasks, StonewallCount counts) {
    std::map<std::pair<std::string, plan::Objects>, std::pair<uint128, uint128>> live;
    Footprint most;
    for (const plan::Phase& phase : plan.phases) {
        const backends::Backend* backend = backends::find_backend(phase.data.backend);
        if (!phase.meta || backend == nullptr || !backend->traits.needs_files) {
            continue;
        }
        const plan::Meta& meta = *phase.meta;
        const std::pair key{meta.tree.top, meta.objects};
        if (phase.op == plan::Op::create) {
            const auto task_count = static_cast<std::uint64_t>(tasks.tasks());
            const patterns::TreeShape shape(meta.tree);
            const std::uint64_t planned =
                meta.window ? meta.window->count * shape.copies() * shape.item_directories() : shape.items();
            const uint128 of_task = std::min(planned, phase.stop.items.value_or(planned));
            const bool is_counted = !phase.stop.stonewall || counts == StonewallCount::whole_volume;
            const uint128 items = is_counted ? of_task * (meta.shared_single ? 1 : task_count) : 0;
            live[key] = {items * meta.write_bytes, items};
        } else if (phase.op == plan::Op::remove_items) {
            live.erase(key);
        }
        uint128 bytes = 0;
        uint128 items = 0;
        for (const auto& [name, sum] : live) {
            bytes += sum.first;
            items += sum.second;
        }
        most.bytes = static_cast<std::uint64_t>(std::min<uint128>(std::max<uint128>(bytes, most.bytes), UINT64_MAX));
        most.file_count =
            static_cast<std::uint64_t>(std::min<uint128>(std::max<uint128>(items, most.file_count), UINT64_MAX));
    }
    return most;
}

bool writes_to_target(const plan::Phase& phase, StonewallCount counts) {
    const backends::Backend* backend = backends::find_backend(phase.data.backend);
    // Preallocated space is needed at once, even if a stonewall ends the phase.
    const bool has_deadline = phase.stop.stonewall && phase.data.io.preallocate == plan::Preallocate::none;
    const bool is_interruptible = has_deadline || (phase.data.files.in_place() && phase.stop.stonewall);
    if ((is_interruptible && counts == StonewallCount::nothing) ||
        (phase.data.files.in_place() && phase.stop.operations)) {
        return false;
    }
    return plan::writes(phase.op) && backend != nullptr && backend->traits.needs_files;
}

}  // namespace

void check_extent(const plan::Plan& plan, const files::TaskMap& tasks, std::uint64_t node_memory) {
    for (const plan::Phase& phase : plan.phases) {
        if (phase.op == plan::Op::replay) {
            check_replay_list(phase, tasks);
        }
        check_total(phase, tasks, node_memory);
        check_offsets(phase, tasks, node_memory);
        check_memory(plan, phase, tasks, node_memory);
    }
}

void check_tasks(const plan::Plan& plan, const files::TaskMap& tasks) {
    if (plan.tasks.active > tasks.all_tasks()) {
        throw plan::PlanError("plan: tasks.active is " + std::to_string(plan.tasks.active) + ", but there are only " +
                              std::to_string(tasks.all_tasks()) + " tasks");
    }
    for (const plan::Phase& phase : plan.phases) {
        if (phase.shift.by == plan::ShiftBy::list &&
            phase.shift.owners.size() != static_cast<std::size_t>(tasks.tasks())) {
            throw plan::PlanError("plan: phase \"" + phase.id + "\" names " +
                                  std::to_string(phase.shift.owners.size()) + " shift.owners, but there are " +
                                  std::to_string(tasks.tasks()) + " tasks");
        }
    }
}

std::uint64_t count_replaced_bytes(const plan::Plan& plan, const files::TaskMap& tasks, std::uint64_t node_memory,
                                   StonewallCount counts) {
    if (!plan.data.files.in_place()) {
        return 0;
    }
    uint128 freed = 0;
    for (const plan::Phase& phase : plan.phases) {
        if (!writes_to_target(phase, counts)) {
            continue;
        }
        // Files that all writing phases share count once.
        const files::FileMap map(plan.target.path, phase.data.files, tasks);
        const std::uint64_t sharers = std::max<std::uint64_t>(1, map.share_of_task(0).sharers);
        const uint128 most = compute_file_bytes(phase, tasks, node_memory) * sharers;
        for (int task = 0; task < tasks.tasks(); ++task) {
            struct stat info {};
            if (map.is_first_task_of_file(task) && ::lstat(map.path(task, 0).c_str(), &info) == 0 &&
                S_ISREG(info.st_mode) && info.st_nlink == 1) {
                freed += std::min<uint128>(most, static_cast<uint128>(info.st_blocks) * 512);
            }
        }
        break;
    }
    return static_cast<std::uint64_t>(std::min<uint128>(freed, UINT64_MAX));
}

Footprint compute_footprint(const plan::Plan& plan, const files::TaskMap& tasks, std::uint64_t node_memory,
                            StonewallCount counts) {
    if (plan.phases.front().op == plan::Op::replay) {
        const backends::Backend* backend = backends::find_backend(plan.data.backend);
        return backend != nullptr && backend->traits.needs_files ? compute_replay_footprint(plan) : Footprint{};
    }
    // Phases that write the same files need the space of the largest phase; other files add to it.
    uint128 every = 0;
    std::map<int, uint128> single;
    const auto take = [](uint128& largest, uint128 bytes) { largest = std::max(largest, bytes); };
    for (const plan::Phase& phase : plan.phases) {
        if (!writes_to_target(phase, counts)) {
            continue;
        }
        const uint128 bytes = compute_file_bytes(phase, tasks, node_memory);
        const std::vector<int> used = count_files(phase);
        if (used.empty()) {
            take(every, bytes);
        }
        for (const int k : used) {
            take(single[k], bytes);
        }
    }
    const auto per_task =
        static_cast<std::uint64_t>(plan.data.files.mapping == plan::Mapping::many ? plan.data.files.count : 1);
    uint128 of_task = every * (per_task - std::min<std::uint64_t>(per_task, single.size()));
    for (const auto& [k, bytes] : single) {
        of_task += std::max(every, bytes);
    }
    const auto task_count = static_cast<std::uint64_t>(tasks.tasks());
    const Footprint trees = compute_tree_footprint(plan, tasks, counts);
    const uint128 bytes = of_task * task_count + trees.bytes;
    return {.bytes = static_cast<std::uint64_t>(std::min<uint128>(bytes, UINT64_MAX)),
            .file_count = (plan.has_data ? task_count * per_task : 0) + trees.file_count};
}

}  // namespace sonde::runs
