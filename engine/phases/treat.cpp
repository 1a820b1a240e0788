// SPDX-License-Identifier: Apache-2.0
#include "phases/treat.hpp"

#include "backends/backend.hpp"
#include "phases/agree.hpp"
#include "phases/gather.hpp"
#include "plan/parse.hpp"
#include "records/text.hpp"
#include "treatments/treatments.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

namespace sonde::phases {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

bool needs_files(const plan::Phase& phase) {
    return backends::find(phase.data.backend)->traits.needs_files;
}

/// Data files of the tasks of this node, as this phase uses them.
std::vector<std::string> node_files(const Context& context, const plan::Phase& phase, const files::FileMap& map) {
    std::vector<std::string> paths;
    if (!needs_files(phase) || phase.meta) {
        return paths;
    }
    for (int task = 0; task < context.tasks.tasks(); ++task) {
        if (context.tasks.node_of(task) != context.team.place().node) {
            continue;
        }
        const int owner = plan::writes(phase.op) ? task : files::shifted(phase.shift, task, context.tasks);
        for (const plan::Lane& lane : phase.lanes) {
            if (!lane.write) {
                paths.push_back(map.path(owner, lane.file));
            }
        }
        for (const int k : phase.files) {
            paths.push_back(map.path(owner, k));
        }
        for (int k = 0; phase.files.empty() && phase.lanes.empty() && k < map.files_per_task(); ++k) {
            paths.push_back(map.path(owner, k));
        }
    }
    std::sort(paths.begin(), paths.end());
    paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
    return paths;
}

/// The record's `treatment` line of one node.
json line_of(const plan::Phase& phase, const plan::Treatment& treatment, const treatments::TreatmentResult& result,
             int node) {
    static constexpr const char* outcomes[] = {"done", "failed", "skipped"};
    json line{{"phase", phase.id},
              {"kind", treatment.kind},
              {"need", treatment.required ? "required" : "best_effort"},
              {"outcome", outcomes[static_cast<int>(result.outcome)]},
              {"seconds", result.seconds},
              {"text", records::json_text(result.text)},
              {"node", node}};
    if (result.user_s && result.system_s) {
        line["user_s"] = *result.user_s;
        line["system_s"] = *result.system_s;
    }
    if (result.forgot_names) {
        line["forgot_names"] = true;
    }
    if (result.locks_before && result.locks_after) {
        line["locks_before"] = *result.locks_before;
        line["locks_after"] = *result.locks_after;
    }
    if (result.before.known) {
        line["resident_before"] = result.before.share();
    }
    if (result.after.known) {
        line["resident_after"] = result.after.share();
    }
    return line;
}

}  // namespace

Treated treat(Context& context, std::size_t index, const files::FileMap& map) {
    const plan::Phase& phase = context.plan.phases[index];
    const auto stopped = [&control = context.team.control()] { return control.stop.load() != 0; };
    const bool leader = context.team.place().leader();
    const std::vector<std::string> paths = leader && (!phase.before.empty() || plan::reads(phase.op))
                                               ? node_files(context, phase, map)
                                               : std::vector<std::string>{};
    Treated treated;
    for (const plan::Treatment& treatment : phase.before) {
        json mine = json::array();
        if (leader) {
            const treatments::TreatmentResult result =
                treatments::apply(treatment, context.storage.directory, paths, stopped);
            treated.held.push_back(result.held);
            mine.push_back(line_of(phase, treatment, result, context.team.place().node));
        }
        std::string complaint;
        const json lines = gather(context.team, mine);
        treated.forgot_names =
            treated.forgot_names || (!lines.empty() && std::all_of(lines.begin(), lines.end(), [](const json& line) {
                return line.contains("forgot_names") && line.at("forgot_names") == true;
            }));
        for (const json& line : lines) {
            context.at_root.record->line("treatment", ordered_json(line));
            if (treatment.required && line.at("outcome") != "done" && complaint.empty()) {
                complaint = "phase " + phase.id + ": the required treatment " + treatment.kind +
                            " failed: " + line.at("text").get<std::string>();
            }
        }
        // Asked together: a signal may have reached only some of them yet.
        if (context.team.maximum(context.team.control().stop.load()) != 0) {
            return treated;
        }
        treated.may_begin = agree(context, phase.id, complaint, exit_environment);
        if (!treated.may_begin) {
            return treated;
        }
    }
    if (leader && plan::reads(phase.op) && needs_files(phase)) {
        treated.residency = treatments::measure_residency(paths);
    }
    return treated;
}

}  // namespace sonde::phases
