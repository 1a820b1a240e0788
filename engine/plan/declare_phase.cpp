// SPDX-License-Identifier: Apache-2.0
// Members of phases.
#include "plan/declare_phase.hpp"

#include "plan/declare_data.hpp"
#include "plan/declare_meta.hpp"
#include "plan/value_kinds.hpp"

namespace sonde::plan {
namespace {

using namespace choices;

constexpr std::int64_t max_files = 1 << 30;

bool is_ambiguous(const std::string& op) {
    return find_operation(op, true) && find_operation(op, false);
}

/// Whether the phase works on a tree: from `on`, else from the operation, else from the parts of the plan.
bool is_tree_phase(const Reader& in, const PhaseContext& context) {
    const std::string op = in.has("op") && in.value("op").is_string() ? in.text("op") : std::string();
    const bool of_tree = find_operation(op, true).has_value();
    const bool tree_only = of_tree && !find_operation(op, false);
    const bool tree =
        in.choice("on", phase_subjects, tree_only || (of_tree && context.plan_has_meta && !context.plan_has_data));
    if (tree_only && !tree) {
        in.fail("on", "is \"data\", but op = \"" + op + "\" works on a tree: leave it out");
    }
    return tree;
}

void describe_shift(Visitor& visitor, Shift& shift) {
    visitor.member("by", shift.by, choice(shift_kinds), "which task takes whose data");
    visitor.member("n", shift.n, IntegerKind(-(1 << 30), 1 << 30), "by tasks, nodes: distance");
    visitor.member("seed", shift.seed, IntegerKind(0, INT64_MAX), "by random, permute: other seeds, other tasks");
    visitor.member("owners", shift.owners, IntegersKind(true), "by list: for each task the task whose data it takes",
                   unset);
}

void describe_stop(Visitor& visitor, Stop& stop) {
    constexpr DurationKind some_time{.more_than_zero = true};
    visitor.member("time", stop.time, some_time, "run exactly this long; the pattern repeats when it ends");
    visitor.member("stonewall", stop.stonewall, some_time, "stop at this time if the volume is not done");
    visitor.member("wearout", stop.wearout, FlagKind{},
                   "after the stonewall every task continues to the operation count of the fastest one");
    visitor.member("min_time", stop.min_time, some_time, "repeat the pattern until this time has passed");
    visitor.member("first_done", stop.first_done, FlagKind{}, "the first task to finish stops all");
    visitor.member("operations", stop.operations, IntegerKind(1, INT64_MAX), "limit of operations per file and task");
    visitor.member("items", stop.items, IntegerKind(1, INT64_MAX), "trees: limit of items per task");
    visitor.member("within", stop.within, TextKind(TextRule{.min_length = 1}),
                   "trees, operations that change nothing: id of an earlier phase of the same op and process; each "
                   "task does at most as many operations as in that phase",
                   unset);
}

void describe_valid(Visitor& visitor, ValidityLimits& valid) {
    visitor.member("min_time", valid.min_time, DurationKind{}, "a shorter phase gets the finding `too_short`");
    visitor.member("max_residency", valid.max_residency, NumberKind{0.0, 1.0},
                   "a larger fraction of the data in the page cache before a read gives the finding `cache_suspect`");
}

/// Members that say what is done before, during and after the operations.
void describe_conditions(Visitor& visitor, Phase& phase) {
    visitor.member("process", phase.separate_process, choice(process_kinds),
                   "separate: the phase starts in a new process, which finds files of earlier phases by the manifest");
    visitor.member("measure", phase.measured, FlagKind{}, "false: preparation");
    visitor.member("barrier", phase.barrier, choice(barriers), "intra: also between open, transfer and close");
    visitor.table("shift", "which task reads whose data",
                  [&phase](Visitor& members) { describe_shift(members, phase.shift); });
    visitor.table("stop", "what ends the phase", [&phase](Visitor& members) { describe_stop(members, phase.stop); });
    visitor.table("valid", "when its numbers count",
                  [&phase](Visitor& members) { describe_valid(members, phase.valid); });
    visitor.list("before", phase.before, "treatments before the phase", {.may_be_empty = true});
    visitor.list("streams", phase.streams, "op duplex: two streams that run at the same time",
                 {.min_entries = 2, .max_entries = 2});
    visitor.member("unless_mismatch", phase.unless_mismatch, FlagKind{}, "skipped after a verification mismatch");
    visitor.member("operations_file", phase.operations_file, TextKind{},
                   "a CSV line for each operation (start and duration in seconds, bytes per second) goes to "
                   "<this>-<task>.csv, the task with five digits; series and histograms cost less",
                   unset);
    visitor.member(
        "replay_file", phase.replay_file, TextKind{},
        "op replay: path of the list of operations (schema/operations), which `sonde replay` writes; on each "
        "node the same",
        unset);
    visitor.table("training", phase.training,
                  "op train: emulated accelerators, one for each task. A sample is one block; each phase (and each "
                  "repetition of the pattern) is one epoch",
                  true);
    visitor.member("think_time", phase.think_time, choice(think_times),
                   "op replay: as_traced: idle before each operation as long as the application; none: no pauses",
                   unset);
}

/// Members of the plan's data and meta that a phase may have itself.
void describe_overrides(Visitor& visitor, Phase& phase, bool tree) {
    visitor.overrides(!phase.meta, [&phase, tree](Visitor& members) {
        describe_backend(members, phase.data);
        members.table("access", phase.data.access, "overrides data.access, member by member");
        members.table("io", phase.data.io, "overrides data.io, member by member");
        describe_verify(members, phase.data);
        if (!tree) {
            describe_suffix(members, phase.data.files);
        }
    });
    visitor.overrides(phase.meta.has_value(), [&phase](Visitor& members) {
        Meta initial;
        members.table("meta", "overrides the plan's meta, member by member",
                      [&](Visitor& table) { describe_meta(table, phase.meta ? *phase.meta : initial, phase.data); });
    });
}

}  // namespace

void describe(Visitor& visitor, Training& training) {
    constexpr DurationKind some_time{.more_than_zero = true};
    visitor.member("batch_size", training.batch_size, IntegerKind(1, 1 << 30), "samples of one batch", required);
    visitor.member("compute_time", training.compute_time, some_time,
                   "time that the emulated accelerator of each task takes for one batch", required);
    visitor.member("prefetch", training.prefetch, IntegerKind(1, 1 << 20),
                   "batches of a task that are in its queue or being read at most");
    visitor.member("shuffle", training.shuffle, choice(shuffles),
                   "samples: each epoch divides the samples of all tasks among the tasks again, in random order; "
                   "files: all files, whose samples "
                   "keep their order; none: each task reads its own in their order");
}

void describe(Visitor& visitor, Treatment& treatment) {
    std::vector<std::string_view> names;
    for (const TreatmentCapability& kind : visitor.capabilities().treatments) {
        names.push_back(kind.name);
    }
    visitor.member("kind", treatment.kind, ListedNameKind(names), "what is done", required);
    visitor.member("need", treatment.required, choice(requirement_levels),
                   "required: the run stops when the treatment fails or has no effect");
    visitor.member("time", treatment.time, DurationKind{}, "sleep", unset);
    visitor.member("fraction", treatment.fraction, NumberKind{0.0, 0.95},
                   "memory_hog: fraction of node memory to hold while the phase runs", unset);
    visitor.member("command", treatment.command, TextKind{},
                   "command: run by /bin/sh once per node; remount: run instead of umount and mount", unset);
    visitor.member("max_residency", treatment.max_residency, NumberKind{0.0, 1.0},
                   "cache treatments: fraction of the data that may still be in the page cache afterwards");
}

void describe(Visitor& visitor, DuplexStream& stream) {
    visitor.member("id", stream.id, TextKind{}, "name of the stream", required);
    visitor.member("op", stream.write, choice(stream_directions), "direction", required);
    visitor.member("tasks", stream.tasks, choice(stream_task_subsets), "which tasks");
    visitor.member("file", stream.file, IntegerKind(0, max_files), "which of each task's files");
}

void describe_phase(Visitor& visitor, Phase& phase, const PhaseContext& context) {
    bool tree = phase.meta.has_value();
    std::optional<bool> subject;
    if (is_ambiguous(operation_name(phase.op))) {
        subject = tree;
    }
    visitor.member("id", phase.id, IdentifierKind{}, "name of the phase", required);
    visitor.when_reading([&](const Reader& in) { tree = is_tree_phase(in, context); });
    visitor.member("op", phase.op, OperationKind{tree}, "the operation; `on` says what stat, read and remove work on",
                   required);
    visitor.member("on", subject, choice(phase_subjects),
                   "subject of stat, read and remove; default: trees when the plan has `meta` and no `data`");
    visitor.member("data_of", phase.data_of, TextKind{},
                   "id of the phase that wrote the data; default: the nearest earlier write", unset);
    visitor.member("files", phase.files, IntegersKind(false), "mapping many: which of each task's files", unset);
    visitor.when_reading([&phase](const Reader& /*in*/) {
        phase.open = phase.op == Op::write ? OpenMode::truncate : OpenMode::overwrite;
    });
    visitor.member("open", phase.open, choice(open_modes), "default: truncate for write, else overwrite", computed);
    describe_conditions(visitor, phase);
    describe_overrides(visitor, phase, tree);
    visitor.when_reading([&](const Reader& in) { context.read_merged(in, phase, tree); });
}

}  // namespace sonde::plan
