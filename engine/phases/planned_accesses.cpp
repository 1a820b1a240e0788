// SPDX-License-Identifier: Apache-2.0
#include "phases/planned_accesses.hpp"

#include "files/file_map.hpp"
#include "files/segments.hpp"
#include "phases/manifest_update.hpp"
#include "phases/stream_jobs.hpp"
#include "workloads/item_names.hpp"
#include "workloads/item_replacement.hpp"

#include <algorithm>
#include <array>

namespace sonde::phases {
namespace {

using plan::Op;
using workloads::StreamJob;

/// Beyond this number, the files of a task are assumed to be like the first ones.
constexpr std::uint64_t max_files_examined = 4096;

/// Hash of a sequence that depends on its elements and their order.
class OrderHash {
 public:
    void add(std::uint64_t number) { state_ = patterns::mix64(state_ ^ number) + 1; }
    void add(std::string_view text) {
        add(text.size());
        std::uint64_t sum = 0;
        for (const char c : text) {
            sum = sum * 1099511628211ULL + static_cast<unsigned char>(c);
        }
        add(sum);
    }
    std::uint64_t value() const { return state_; }

 private:
    std::uint64_t state_ = 0x736f6e6465ULL;
};

/// Enumerates the accesses of all streams of one phase.
class AccessLister {
 public:
    AccessLister(const RunContext& context, std::size_t index, bool in_order, const AccessListener& listener)
        : context_(context),
          index_(index),
          phase_(context.plan.phases[index]),
          map_(context.storage.directory, phase_.data.files, context.tasks),
          in_order_(in_order),
          listener_(listener) {}

    PlannedPhase run(results::Totals& totals) {
        if (!phase_.meta) {
            sum_.segments = files::segments_of(phase_, context_.tasks, context_.node_memory);
        }
        const int processes = static_cast<int>(context_.tasks.node_of_process.size());
        for (int process = 0; process < processes; ++process) {
            for (const StreamAssignment assignment : assign_streams(phase_, context_.tasks, process)) {
                if (assignment.task != no_task) {
                    list_stream(assignment, totals);
                }
            }
        }
        totals.planned_operations = totals.file_operations = sum_.operations;
        count_files();
        sum_.order_hash = in_order_ ? sequence_.value() : 0;
        return sum_;
    }

 private:
    void list_stream(StreamAssignment assignment, results::Totals& totals) {
        const StreamJob job = make_stream_job(context_, index_, assignment, map_);
        const std::uint64_t before = sum_.operations;
        if (in_order_) {
            sequence_.add(static_cast<std::uint64_t>(assignment.task));
        }
        if (job.replay) {
            list_replay(job);
        } else if (job.tree) {
            list_tree_operations(job);
        } else if (plan::acts_on_files(phase_.op)) {
            list_name_operations(job);
        } else if (job.training) {
            list_training(job);
        } else {
            list_data_operations(job);
        }
        files_ += job.file_count;
        results::TaskRow row;
        row.task = assignment.task;
        row.stream = assignment.stream;
        row.next_operation = sum_.operations - before;
        totals.rows.push_back(row);
    }

    void list_data_operations(const StreamJob& job) {
        const std::uint64_t examined = in_order_ ? job.file_count : std::min(job.file_count, max_files_examined);
        std::uint64_t operations = 0;
        for (std::uint64_t k = 0; k < examined; ++k) {
            const workloads::FileJob file = job.make_file_job(k);
            operations += file.operation_count;
            if (in_order_) {
                list_file(job, file);
            }
        }
        if (examined < job.file_count) {
            operations = operations / examined * job.file_count;
        }
        sum_.operations += operations;
        sum_.bytes += phase_.data.access.bytes_of(operations);
    }

    void list_training(const StreamJob& job) {
        const workloads::TrainingJob& training = *job.training;
        const plan::Access& access = phase_.data.access;
        const std::uint64_t transfers = access.block / access.transfer;
        const patterns::SampleOrder order = training.order(0);
        for (std::uint64_t i = 0; in_order_ && i < training.training_set.per_task(); ++i) {
            const patterns::SampleLocation sample = order.locate(static_cast<std::uint64_t>(job.task), i);
            const workloads::FileJob file = training.make_file_job(sample.owner, sample.file);
            sequence_.add(file.file_number);
            for (std::uint64_t k = sample.block * transfers; k < (sample.block + 1) * transfers; ++k) {
                const std::uint64_t offset = file.geometry.offset_of(k);
                sequence_.add(offset);
                report({index_, job.task, file.file_number, file.path, offset, access.transfer});
            }
        }
        sum_.operations += training.training_set.per_task() * transfers;
        sum_.bytes += training.training_set.per_task() * access.block;
    }

    void list_file(const StreamJob& job, const workloads::FileJob& file) {
        sequence_.add(phase_.data.files.suffix);
        sequence_.add(file.file_number);
        sequence_.add(static_cast<std::uint64_t>(job.writes) * 2 + static_cast<std::uint64_t>(job.reads));
        std::array<std::uint64_t, 64> batch;
        std::array<std::uint32_t, 64> lengths;
        for (std::uint64_t done = 0; done < file.operation_count;) {
            const std::size_t count = std::min<std::uint64_t>(batch.size(), file.operation_count - done);
            file.geometry.fill_offsets(done, 0, {batch.data(), count}, {lengths.data(), count});
            for (std::size_t k = 0; k < count; ++k) {
                sequence_.add(batch[k]);
                sequence_.add(std::uint64_t{lengths[k]});
                report({index_, job.task, file.file_number, file.path, batch[k], lengths[k]});
            }
            done += count;
        }
    }

    /// All operations count; those without bytes are not reported.
    void list_replay(const StreamJob& job) {
        sum_.operations += job.replay->operations.size();
        sum_.bytes += job.replay->bytes;
        std::string path;
        for (const patterns::ListedOperation& operation : job.replay->operations) {
            if (!in_order_) {
                break;
            }
            for (const std::uint64_t number : {static_cast<std::uint64_t>(operation.kind), operation.offset,
                                               std::uint64_t{operation.length}, std::uint64_t{operation.file}}) {
                sequence_.add(number);
            }
            if (operation.length > 0) {
                job.set_path(operation.file, path);
                report({index_, job.task, operation.file, path, operation.offset, operation.length});
            }
        }
    }

    void list_name_operations(const StreamJob& job) {
        std::string path;
        for (std::uint64_t k = 0; in_order_ && k < job.file_count; ++k) {
            job.set_path(k, path);
            sequence_.add(path);
            report({index_, job.task, k, path, 0, 0});
        }
        sum_.operations += job.file_count;
    }

    void list_tree_operations(const StreamJob& job) {
        if (phase_.op == Op::cycle) {
            list_cycle(job);
            return;
        }
        sum_.operations += job.file_count;
        const std::uint64_t length = phase_.op == Op::create       ? phase_.meta->write_bytes
                                     : phase_.op == Op::read_items ? phase_.meta->read_bytes
                                                                   : 0;
        sum_.bytes += job.file_count * length;
        if (!in_order_ || job.file_count == 0) {
            return;
        }
        sequence_.add(length);
        if (plan::acts_on_items(phase_.op)) {
            list_items(job, length);
            return;
        }
        std::string path;
        for (std::uint64_t n = 0; n < job.file_count; ++n) {
            job.tree->set_directory_path(n, phase_.op == Op::rmtree, path);
            sequence_.add(path);
            report({index_, job.task, 0, path, 0, 0});
        }
    }

    void list_items(const StreamJob& job, std::uint64_t length) {
        const backends::Backend& nothing = *backends::find_backend("null");
        const std::unique_ptr<backends::Channel> channel = nothing.make_channel({});
        workloads::ItemNames items(*job.tree, *phase_.meta, *channel->name_operations(), phase_.op == Op::rename);
        for (std::uint64_t next = 0; next < job.file_count;) {
            const auto count = static_cast<std::size_t>(items.make_names(next, job.file_count, 0));
            for (std::size_t k = 0; k < count; ++k) {
                const std::string path = items.path(k);
                sequence_.add(path);
                report({index_, job.task, 0, path, 0, length});
            }
            next += count;
        }
    }

    /// In the order of CycleStream: round by round, all copies of the tree in each.
    void list_cycle(const StreamJob& job) {
        const plan::Meta& meta = *phase_.meta;
        const std::uint64_t copies = job.tree->parts.empty() ? 0 : job.tree->shape.copies();
        const std::uint64_t all = copies * meta.window->count;
        sum_.operations += all * workloads::calls_per_replacement(meta.cycle);
        sum_.bytes += all * (meta.read_bytes + (meta.cycle.inspects_only ? 0 : meta.write_bytes));
        workloads::ItemReplacement turn;
        for (std::uint64_t turns = 0; in_order_ && turns < all; ++turns) {
            workloads::set_item_replacement(*job.tree, meta, job.task, job.tasks, turns / copies, turns % copies, turn);
            sequence_.add(turn.old_path);
            sequence_.add(meta.read_bytes);
            report({index_, job.task, 0, turn.old_path, 0, meta.read_bytes});
            if (!meta.cycle.inspects_only) {
                sequence_.add(turn.new_path);
                sequence_.add(meta.write_bytes);
                report({index_, job.task, 0, turn.new_path, 0, meta.write_bytes});
            }
        }
    }

    void count_files() {
        if (phase_.meta) {
            const auto tasks = static_cast<std::uint64_t>(phase_.meta->shared_single ? 1 : context_.tasks.tasks());
            sum_.files = patterns::TreeShape(phase_.meta->tree).items() * tasks;
        } else {
            sum_.files = phase_.data.files.mapping == plan::Mapping::many ? files_ : map_.distinct_files();
        }
    }

    void report(const PlannedAccess& access) const {
        if (listener_) {
            listener_(access);
        }
    }

    const RunContext& context_;
    std::size_t index_;
    const plan::Phase& phase_;
    files::FileMap map_;
    bool in_order_;
    const AccessListener& listener_;
    PlannedPhase sum_;
    std::uint64_t files_ = 0;
    OrderHash sequence_;
};

}  // namespace

std::vector<PlannedPhase> list_accesses(const plan::Plan& plan, const files::TaskMap& tasks, std::uint64_t node_memory,
                                        ranks::Team& team, bool in_order, const AccessListener& listener) {
    const RunOptions options;
    RunContext context{.plan = plan,
                       .options = options,
                       .team = team,
                       .tasks = tasks,
                       .node_memory = node_memory,
                       .storage = {.directory = plan.target.path, .file_system = {}}};
    std::vector<PlannedPhase> phases;
    for (std::size_t index = 0; index < plan.phases.size(); ++index) {
        results::Totals totals;
        phases.push_back(AccessLister(context, index, in_order, listener).run(totals));
        update_manifest(context, index, totals);
    }
    return phases;
}

}  // namespace sonde::phases
