// SPDX-License-Identifier: Apache-2.0
#include "plan/check_data.hpp"

#include "plan/check_datasets.hpp"
#include "plan/check_io.hpp"
#include "plan/check_training.hpp"
#include "plan/choices.hpp"
#include "plan/plan_error.hpp"
#include "plan/uint128.hpp"
#include "plan/units.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

namespace sonde::plan {
namespace {

constexpr Bytes largest_transfer = 1ULL << 30U;
constexpr Bytes largest_file = 1ULL << 62U;

void check_distribution(const std::string& where, const Access& access) {
    if (!access.distribution) {
        return;
    }
    const Distribution& distribution = *access.distribution;
    if (access.order != AccessOrder::random_replace) {
        throw_member_error(where + ".access.distribution", "is only used with order = \"random_replace\"");
    }
    for (const auto& [is_set, name, kind] :
         {std::tuple{distribution.theta.has_value(), "theta", DistributionKind::zipf},
          std::tuple{distribution.share.has_value(), "share", DistributionKind::pareto},
          std::tuple{distribution.deviation.has_value(), "deviation", DistributionKind::normal}}) {
        if (is_set && distribution.kind != kind) {
            throw_member_error(
                where + ".access.distribution." + name,
                std::string("is only used with kind = \"") + get_value_name(choices::distributions, kind) + "\"");
        }
    }
}

void check_sizes(const std::string& where, const Access& access) {
    if (access.sizes.empty()) {
        return;
    }
    if (access.order != AccessOrder::random_replace) {
        throw_member_error(where + ".access.sizes", "is only used with order = \"random_replace\"");
    }
    Bytes largest = 0;
    double sum = 0;
    for (const TransferSize& entry : access.sizes) {
        if (entry.size == 0) {
            throw_member_error(where + ".access.sizes", "holds a size of 0 B");
        }
        largest = std::max(largest, entry.size);
        sum += entry.percent;
    }
    if (std::abs(sum - 100) > 1e-6) {
        throw_member_error(where + ".access.sizes", "has percentages that do not add up to 100");
    }
    if (largest != access.transfer) {
        throw_member_error(where + ".access.sizes", "has " + std::to_string(largest) +
                                                        " B as its largest size, which transfer must be too (it is " +
                                                        std::to_string(access.transfer) + " B)");
    }
}

/// Limits of the rate of a task.
void check_limits(const std::string& where, const Phase& phase) {
    const Io& io = phase.data.io;
    for (const auto& [is_set, name] : {std::pair{io.rate_limit.has_value(), ".io.rate_limit"},
                                       std::pair{io.iops_limit.has_value(), ".io.iops_limit"}}) {
        if (is_set && io.queue_depth > 1) {
            throw_member_error(where + name, "needs queue_depth = 1: use more tasks for more operations in flight");
        }
        if (is_set && io.pause > 0) {
            throw_member_error(where + name, "and io.pause exclude each other: keep one");
        }
    }
    if (io.rate_limit && *io.rate_limit <= 0) {
        throw_member_error(where + ".io.rate_limit", "must be more than zero");
    }
}

void check_access(const std::string& where, const Access& access) {
    check_sizes(where, access);
    check_distribution(where, access);
    if (access.transfer == 0 || access.transfer > largest_transfer) {
        throw_member_error(where + ".access.transfer", "must be from 1 B to " + format_bytes(largest_transfer));
    }
    if (access.block == 0 || access.block % access.transfer != 0) {
        throw_member_error(where + ".access.block",
                           "is " + std::to_string(access.block) + " B, but must be a multiple of transfer (" +
                               std::to_string(access.transfer) + " B); a phase that sets no block has that of data");
    }
    if (access.within && access.order != AccessOrder::random_replace) {
        throw_member_error(where + ".access.within", "is only used with order = \"random_replace\"");
    }
    if (access.within && (*access.within < access.transfer || *access.within % access.transfer != 0)) {
        throw_member_error(where + ".access.within", "is " + std::to_string(*access.within) +
                                                         " B, but must be a multiple of transfer (" +
                                                         std::to_string(access.transfer) + " B)");
    }
    if (access.order == AccessOrder::stride && access.stride < access.transfer) {
        throw_member_error(where + ".access.stride", "must be at least transfer (" + std::to_string(access.transfer) +
                                                         " B): transfers would overlap");
    }
    if (access.order != AccessOrder::stride && access.stride != 0) {
        throw_member_error(where + ".access.stride", "is only used with order = \"stride\"");
    }
    if (access.order == AccessOrder::stride && access.gap != 0) {
        throw_member_error(where + ".access.gap", "does not go with order = \"stride\": the stride already says it");
    }
    if (access.volume && access.volume->of == Amount::Basis::bytes && access.volume->bytes == 0) {
        throw_member_error(where + ".access.volume", "must be more than zero");
    }
    if (access.volume && access.volume->of == Amount::Basis::node_memory && access.volume->factor <= 0) {
        throw_member_error(where + ".access.volume.x", "must be more than zero");
    }
    for (const Bytes size : {access.block, access.gap, access.offset, access.stride}) {
        if (size >= largest_file) {
            throw_member_error(where + ".access", "reaches beyond the largest file (4 EiB)");
        }
    }
}

void check_reach(const std::string& where, const Data& data, const Tasks& tasks) {
    const std::uint64_t task_count =
        static_cast<std::uint64_t>(tasks.processes) * static_cast<std::uint64_t>(tasks.threads);
    if (data.access.segments && !fits_in_file(data, *data.access.segments, task_count)) {
        throw_member_error(where + ".access",
                           "reaches beyond the largest file (4 EiB): check segments, stride, gap and offset");
    }
}

void check_streams(const std::string& where, const Phase& phase) {
    if (phase.op != Op::duplex) {
        if (!phase.streams.empty()) {
            throw_member_error(where + ".streams", "are only used with op = \"duplex\"");
        }
        return;
    }
    if (phase.streams.size() != 2 || phase.streams[0].write == phase.streams[1].write) {
        throw_member_error(where + ".streams", "must be two: one that writes and one that reads");
    }
    const bool same = phase.streams[0].tasks == DuplexStream::TaskSubset::same;
    if (same != (phase.streams[1].tasks == DuplexStream::TaskSubset::same) ||
        (!same && phase.streams[0].tasks == phase.streams[1].tasks)) {
        throw_member_error(where + ".streams",
                           "must both run on the same tasks, or one on first_half and one on second_half");
    }
    if (phase.data.files.mapping != Mapping::many || phase.data.files.count < 2 ||
        phase.streams[0].file == phase.streams[1].file) {
        throw_member_error(where + ".streams",
                           "need files.mapping = \"many\" and different files: one is written, the other read");
    }
    for (const DuplexStream& stream : phase.streams) {
        if (stream.file >= phase.data.files.count) {
            throw_member_error(where + ".streams", "name file " + std::to_string(stream.file) +
                                                       ", but files.count is " +
                                                       std::to_string(phase.data.files.count));
        }
    }
}

/// Reads of a mixed phase are compared in units of 4 KiB, each of which one operation must write whole.
void check_mixed_verification(const Phase& phase) {
    constexpr Bytes unit = 4096;
    const Access& a = phase.data.access;
    bool is_aligned = a.transfer % unit == 0 && a.offset % unit == 0 && a.gap % unit == 0 && a.stride % unit == 0;
    for (const TransferSize& entry : a.sizes) {
        is_aligned = is_aligned && entry.size % unit == 0;
    }
    if (!is_aligned) {
        throw_member_error(
            phase.data_at + ".verify",
            "in a mixed phase needs transfer, offset, gap, stride and sizes that are multiples of 4 KiB");
    }
    if (phase.data.io.queue_depth > 1) {
        throw_member_error(
            phase.data_at + ".verify",
            "in a mixed phase needs queue_depth = 1: a read would find a part of a write that is in flight");
    }
    const Mapping mapping = phase.data.files.mapping;
    if (mapping != Mapping::per_task && mapping != Mapping::many && (a.scope == PermutationScope::file || a.within)) {
        throw_member_error(
            phase.data_at + ".verify",
            "in a mixed phase needs files of one task, or scope = \"task\" without within: a read would find a "
            "part of what another task is writing");
    }
}

void check_verify(const std::string& where, const Phase& phase, const Phase* source) {
    const bool on_read = phase.data.verify == Verify::on_read || phase.data.verify == Verify::both;
    const bool readback = phase.data.verify == Verify::readback || phase.data.verify == Verify::both;
    if (!on_read && !readback) {
        return;
    }
    if (phase.data.payload.kind == PayloadKind::zero) {
        throw_member_error(phase.data_at + ".verify", "is useless with payload.kind = \"zero\": a hole would pass");
    }
    if (on_read && reads(phase.op) && source != nullptr && source->data.access.order == AccessOrder::random_replace) {
        throw_member_error(where + ".verify", "cannot be exact: phase \"" + source->id +
                                                  "\" writes with random_replace, which leaves blocks unwritten");
    }
    if (on_read && phase.op == Op::mixed) {
        check_mixed_verification(phase);
    }
    if (readback && writes(phase.op) && phase.data.access.order == AccessOrder::random_replace) {
        throw_member_error(where + ".verify",
                           "readback cannot be exact after random_replace, which leaves blocks unwritten");
    }
}

/// The earlier phase whose data this one reads.
const Phase* find_source(const Plan& plan, std::size_t index) {
    const Phase& phase = plan.phases[index];
    for (std::size_t i = index; i-- > 0;) {
        if (writes(plan.phases[i].op) && plan.phases[i].data.files.suffix == phase.data.files.suffix &&
            (phase.data_of.empty() || plan.phases[i].id == phase.data_of)) {
            return &plan.phases[i];
        }
    }
    return nullptr;
}

bool share_files(const Phase& a, const Phase& b) {
    if (a.data.files.suffix != b.data.files.suffix) {
        return false;
    }
    return a.files.empty() || b.files.empty() || std::any_of(a.files.begin(), a.files.end(), [&b](int file) {
               return std::find(b.files.begin(), b.files.end(), file) != b.files.end();
           });
}

/// The data that a phase reads must not have been replaced.
void check_not_replaced(const Plan& plan, std::size_t index, const Phase& source) {
    const Phase& phase = plan.phases[index];
    for (const Phase* later = &source + 1; later < &phase; ++later) {
        if (later->makes_files() && share_files(*later, phase)) {
            throw_member_error("phases[" + std::to_string(index) + "].data_of",
                               "names \"" + source.id + "\", but phase \"" + later->id +
                                   "\" makes the files anew before: name that one, or give it open = \"overwrite\"");
        }
    }
}

void check_shift(const std::string& where, const Plan& plan, const Phase& phase) {
    const int task_count = plan.tasks.active > 0 ? plan.tasks.active : static_cast<int>(phase.shift.owners.size());
    if ((phase.shift.by == ShiftBy::list) != !phase.shift.owners.empty()) {
        throw_member_error(where + ".shift.owners", "goes with by = \"list\" and with nothing else");
    }
    if (!phase.shift.owners.empty() && (static_cast<int>(phase.shift.owners.size()) != task_count ||
                                        std::any_of(phase.shift.owners.begin(), phase.shift.owners.end(),
                                                    [task_count](int owner) { return owner >= task_count; }))) {
        throw_member_error(where + ".shift.owners",
                           "must name one of the " + std::to_string(task_count) + " tasks for each of them");
    }
    if (phase.op == Op::remove && (phase.shift.by == ShiftBy::random || phase.shift.by == ShiftBy::list)) {
        throw_member_error(where + ".shift", "may let two tasks remove the same file: use permute");
    }
    if (phase.shift.by != ShiftBy::none && writes(phase.op)) {
        throw_member_error(where + ".shift", "is for reads: a task always writes its own data");
    }
}

/// Whether an earlier phase provides the data that this one needs.
void check_source(const std::string& where, const Plan& plan, std::size_t index, const Phase* source,
                  const BackendTraits& backend) {
    const Phase& phase = plan.phases[index];
    if (source == nullptr && !phase.data_of.empty()) {
        throw_member_error(where + ".data_of",
                           "names \"" + phase.data_of + "\", but no earlier phase of that name writes");
    }
    if (source != nullptr && !phase.data_of.empty() && !writes(phase.op)) {
        check_not_replaced(plan, index, *source);
    }
    const bool needs_data = reads(phase.op) || acts_on_files(phase.op) || phase.op == Op::rewrite;
    if (needs_data && source == nullptr && backend.stores_data && !plan.target.use_existing && !plan.target.device) {
        throw_member_error(where + ".op",
                           std::string("is \"") + operation_name(phase.op) +
                               "\", but no earlier phase writes the data (and target.use_existing is not set)");
    }
}

/// Members that go with some operations only.
void check_operation(const std::string& where, const Phase& phase) {
    if (phase.op == Op::mixed && !phase.data.access.read_ratio) {
        throw_member_error(where + ".access.read_ratio",
                           "is missing: op = \"mixed\" needs the share of reads (0 to 1)");
    }
    if (phase.op != Op::mixed && phase.data.access.read_ratio) {
        throw_member_error(where + ".access.read_ratio", "is only used with op = \"mixed\"");
    }
}

/// Members that go with some mappings of files only.
void check_mapping(const std::string& where, const Phase& phase) {
    const Mapping mapping = phase.data.files.mapping;
    if (!phase.files.empty() && mapping != Mapping::many) {
        throw_member_error(where + ".files", "is only used with files.mapping = \"many\"");
    }
    for (const int file : phase.files) {
        if (file >= phase.data.files.count) {
            throw_member_error(where + ".files", "names file " + std::to_string(file) + ", but files.count is " +
                                                     std::to_string(phase.data.files.count));
        }
    }
    if (acts_on_files(phase.op) && mapping != Mapping::many && mapping != Mapping::per_task &&
        !(phase.op == Op::remove && mapping != Mapping::per_node)) {
        throw_member_error(where + ".op",
                           std::string("= \"") + operation_name(phase.op) +
                               "\" needs files of one task each: files.mapping = \"many\" or \"per_task\"");
    }
}

}  // namespace

bool fits_in_file(const Data& data, std::uint64_t segments, std::uint64_t tasks) {
    const Access& a = data.access;
    const uint128 sharers = data.files.mapping == Mapping::shared || data.files.mapping == Mapping::per_node ? tasks
                            : data.files.mapping == Mapping::per_group
                                ? static_cast<std::uint64_t>(std::max(1, data.files.group_size))
                                : 1;
    const uint128 room = (largest_file - a.offset) / (a.order == AccessOrder::stride ? a.stride : a.block + a.gap);
    const uint128 blocks = segments * sharers;
    return blocks <= room && (a.order != AccessOrder::stride || blocks * (a.block / a.transfer) <= room);
}

void check_data(const std::string& where, const Plan& plan, std::size_t index, const Capabilities& capabilities) {
    const Phase& phase = plan.phases[index];
    if (!phase.stop.within.empty()) {
        throw_member_error(where + ".stop.within", "is for walks and items of trees: for data give segments or volume");
    }
    if (phase.stop.items) {
        throw_member_error(where + ".stop.items", "counts the items of a tree: for data give segments or volume");
    }
    check_access(phase.data_at, phase.data.access);
    check_reach(phase.data_at, phase.data, plan.tasks);
    check_io(phase.data_at, phase.data, plan.tasks, capabilities);
    check_limits(phase.data_at, phase);
    check_streams(where, phase);
    if (phase.op == Op::replay) {
        return;  // check_replay.cpp has its rules
    }
    const Phase* source = find_source(plan, index);
    check_datasets(where, plan, phase, source, capabilities);
    check_source(where, plan, index, source, capabilities.find_traits(phase.data.backend));
    check_verify(where, phase, source);
    check_operation(where, phase);
    if (phase.separate_process && index == 0) {
        throw_member_error(where + ".process", "= \"separate\" has no meaning for the first phase");
    }
    check_mapping(where, phase);
    check_training(where, phase);
    check_shift(where, plan, phase);
    if (!phase.data.files.suffix.empty() && phase.data.files.paths.empty()) {
        throw_member_error(where + ".suffix", "is only used with data.files.paths");
    }
    if (phase.data.io.pause > 0 && phase.data.io.queue_depth > 1) {
        throw_member_error(where + ".io.pause", "needs queue_depth = 1");
    }
    if (phase.barrier == Barrier::intra && phase.data.files.mapping == Mapping::many) {
        throw_member_error(
            where + ".barrier",
            "= \"intra\" does not go with files.mapping = \"many\": files are opened one after the other");
    }
}

}  // namespace sonde::plan
