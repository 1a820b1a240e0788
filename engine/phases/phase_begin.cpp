// SPDX-License-Identifier: Apache-2.0
#include "phases/phase_begin.hpp"

#include "files/trees.hpp"
#include "patterns/tree.hpp"
#include "phases/result_lines.hpp"
#include "plan/choices.hpp"

#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

namespace sonde::phases {
namespace {

using nlohmann::ordered_json;

struct PlannedAmount {
    std::uint64_t bytes = 0, operations = 0;
};

/// Sums the planned amounts of all nodes; at the root.
PlannedAmount sum_planned(ranks::Team& team, const PlannedAmount& own_amount) {
    const auto to_text = [](const PlannedAmount& sum) {
        return std::to_string(sum.bytes) + " " + std::to_string(sum.operations);
    };
    const auto read = [](const std::string& text) {
        PlannedAmount sum;
        char* cursor = nullptr;
        sum.bytes = std::strtoull(text.c_str(), &cursor, 10);
        sum.operations = std::strtoull(cursor, nullptr, 10);
        return sum;
    };
    return read(team.reduce_text(to_text(own_amount), [&](const std::string& a, const std::string& b) {
        const PlannedAmount x = read(a);
        const PlannedAmount y = read(b);
        return to_text({x.bytes + y.bytes, x.operations + y.operations});
    }));
}

const char* name_cache_state(const plan::Phase& phase, const treatments::Residency& residency) {
    return phase.data.io.direct                            ? "direct"
           : !plan::reads(phase.op) || !residency.is_known ? "unknown"
           : residency.share() <= 0.01                     ? "cold"
                                                           : "warm";
}

void describe_data(ordered_json& line, const RunContext& context, const plan::Phase& phase, const files::FileMap& map) {
    const plan::Access& access = phase.data.access;
    line["files"] = map.distinct_files();
    line["transfer_bytes"] = access.transfer;
    line["order"] = plan::get_value_name(plan::choices::orders, access.order);
    line["queue_depth"] = phase.data.io.queue_depth;
    line["labels"] = ordered_json::array();
    const plan::Bytes stripe = context.storage.full_stripe;
    if (stripe > 0 &&
        (access.offset % stripe != 0 || access.transfer % stripe != 0 || (access.block + access.gap) % stripe != 0)) {
        line["labels"].push_back("unaligned");
    }
}

/// Members that describe the tree, in place of files and transfers.
void describe_tree(ordered_json& line, const RunContext& context, const plan::Phase& phase) {
    const plan::Meta& meta = *phase.meta;
    const patterns::TreeShape shape(meta.tree);
    const auto tasks = static_cast<std::uint64_t>(meta.shared_single ? 1 : context.tasks.tasks());
    line["files"] = shape.items() * tasks;
    line["transfer_bytes"] = phase.op == plan::Op::create       ? meta.write_bytes
                             : phase.op == plan::Op::read_items ? meta.read_bytes
                                                                : 0;
    line["order"] = plan::get_value_name(plan::choices::select_orders, meta.order);
    line["queue_depth"] = 1;
    line["labels"] = ordered_json::array();
    const std::uint64_t directories =
        shape.copies() * shape.directories() * files::list_branches(meta, context.tasks).size();
    line["tree"] = {{"objects", meta.objects == plan::Objects::files ? "files" : "directories"},
                    {"scope", plan::get_value_name(plan::choices::tree_scopes, meta.tree.scope)},
                    {"directories", directories},
                    {"items_per_dir", meta.tree.items_per_dir}};
}

}  // namespace

void write_phase_begin(const RunContext& context, std::size_t index, const files::FileMap& map,
                       const treatments::Residency& residency) {
    const plan::Phase& phase = context.plan.phases[index];
    ProgressBoard& board = *context.shared.board;
    PlannedAmount own_amount;
    if (context.team.location().is_leader()) {
        for (int i = 0; i < board.stream_count.load(); ++i) {
            own_amount.bytes += board.meter(i).planned_bytes;
            own_amount.operations += board.meter(i).planned_operations;
        }
        board.planned_operations.store(own_amount.operations);
        board.time_limit_ns.store(phase.stop.time.value_or(phase.stop.stonewall.value_or(0)));
    }
    const PlannedAmount planned = sum_planned(context.team, own_amount);
    if (!context.is_root()) {
        return;
    }
    ordered_json line{{"backend", phase.data.backend}, {"direct", phase.data.io.direct}, {"measured", phase.measured}};
    line["cache"] = name_cache_state(phase, residency);
    if (planned.operations > 0) {
        line["planned_bytes"] = planned.bytes;
        line["planned_ops"] = planned.operations;
    }
    line["tasks"] = context.tasks.tasks();
    if (phase.meta) {
        describe_tree(line, context, phase);
    } else {
        describe_data(line, context, phase, map);
    }
    context.root_state.record->write_line("phase_begin", with_phase_members(phase, index, line));
}

}  // namespace sonde::phases
