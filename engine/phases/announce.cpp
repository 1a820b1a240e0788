// SPDX-License-Identifier: Apache-2.0
// What the record says of a phase before it begins.
#include "phases/phase_run.hpp"

#include "plan/parse.hpp"

#include <cstdio>

namespace sonde::phases {

using nlohmann::json;
using nlohmann::ordered_json;

void PhaseRun::announce() {
    std::uint64_t planned = 0;
    std::uint64_t operations = 0;
    if (context_.team.place().leader()) {
        for (int i = 0; i < context_.board->streams.load(); ++i) {
            planned += context_.board->meter(i).planned_bytes;
            operations += context_.board->meter(i).planned_operations;
        }
        context_.board->planned_operations.store(operations);
        context_.board->time_limit_ns.store(phase_.stop.time.value_or(phase_.stop.stonewall.value_or(0)));
    }
    const std::string sums = context_.team.reduce(std::to_string(planned) + " " + std::to_string(operations),
                                                  [](const std::string& a, const std::string& b) {
                                                      std::uint64_t x = 0, y = 0, u = 0, v = 0;
                                                      std::sscanf(a.c_str(), "%lu %lu", &x, &y);
                                                      std::sscanf(b.c_str(), "%lu %lu", &u, &v);
                                                      return std::to_string(x + u) + " " + std::to_string(y + v);
                                                  });
    if (!context_.root()) {
        return;
    }
    std::sscanf(sums.c_str(), "%lu %lu", &planned, &operations);
    ordered_json line{
        {"backend", phase_.data.backend}, {"direct", phase_.data.io.direct}, {"measured", phase_.measured}};
    const bool known = residency_.known;
    line["cache"] = phase_.data.io.direct               ? "direct"
                    : !plan::reads(phase_.op) || !known ? "unknown"
                    : residency_.share() <= 0.01        ? "cold"
                                                        : "warm";
    if (operations > 0) {
        line["planned_bytes"] = planned;
        line["planned_ops"] = operations;
    }
    line["tasks"] = context_.tasks.tasks();
    if (phase_.meta) {
        announce_tree(line);
        context_.record->line("phase_begin", tagged(line));
        return;
    }
    line["files"] = map_.distinct_files();
    line["transfer_bytes"] = phase_.data.access.transfer;
    line["order"] = plan::text(phase_.data.access.order);
    line["queue_depth"] = phase_.data.io.queue_depth;
    line["labels"] = ordered_json::array();
    const auto stripe = context_.plan.target.full_stripe;
    const plan::Access& a = phase_.data.access;
    if (stripe && *stripe > 0 &&
        (a.offset % *stripe != 0 || a.transfer % *stripe != 0 || (a.block + a.gap) % *stripe != 0)) {
        line["labels"].push_back("unaligned");
    }
    context_.record->line("phase_begin", tagged(line));
}

/// What is said of a tree where for data files and transfers are named.
void PhaseRun::announce_tree(ordered_json& line) const {
    const plan::Meta& meta = *phase_.meta;
    const patterns::TreeShape shape(meta.tree);
    const auto tasks = static_cast<std::uint64_t>(meta.shared_single ? 1 : context_.tasks.tasks());
    line["files"] = shape.items() * tasks;
    line["transfer_bytes"] = phase_.op == plan::Op::create       ? meta.write
                             : phase_.op == plan::Op::read_items ? meta.read
                                                                 : 0;
    static constexpr const char* orders[] = {"creation", "permute", "replace", "zipf"};
    line["order"] = orders[static_cast<int>(meta.order)];
    line["queue_depth"] = 1;
    line["labels"] = ordered_json::array();
    line["tree"] = {
        {"objects", meta.objects == plan::Objects::files ? "files" : "directories"},
        {"scope", plan::text(meta.tree.scope)},
        {"directories", shape.copies() * shape.directories() * files::branches_of(meta, context_.tasks).size()},
        {"items_per_dir", meta.tree.items_per_dir}};
}

}  // namespace sonde::phases
