// SPDX-License-Identifier: Apache-2.0
// Treatments on the machine, and what its caches hold before a phase.
#include "virtual/simulation.hpp"
#include "virtual/without_storage.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

namespace sonde::simulate {
namespace {

using nlohmann::ordered_json;

constexpr Time longest_flush = 3600LL * 1'000'000'000;

}  // namespace

/// The share of what tasks will read that their nodes have cached, weighted by bytes.
treatments::Residency Simulation::residency(const plan::Phase& phase, const files::FileMap& map) const {
    treatments::Residency sum;
    if (phase.meta || !plan::reads(phase.op) || without_storage(phase.data.backend) != nullptr) {
        return sum;
    }
    std::set<std::pair<std::uint32_t, std::string>> seen;  // of each node each file once
    for (int task = 0; task < context_.tasks.tasks(); ++task) {
        const int owner = plan::writes(phase.op) ? task : files::shifted(phase.shift, task, context_.tasks);
        for (int k = 0; k < map.files_per_task(); ++k) {
            const std::string path = map.path(owner, k);
            if (!machine_.exists(path) || !seen.emplace(client_of(task), path).second) {
                continue;
            }
            const FileId file = const_cast<Machine&>(machine_).file(path);
            sum.known = true;
            sum.pages += machine_.size(file) / 4096;
            sum.resident += machine_.cached(client_of(task), file) / 4096;
        }
    }
    return sum;
}

bool Simulation::treat(std::size_t index) {
    const plan::Phase& phase = plan_.phases[index];
    for (const plan::Treatment& treatment : phase.before) {
        const Time begin = machine_.now();
        std::string text, outcome = "done";
        const std::string& kind = treatment.kind;
        if (kind == "sync") {
            machine_.flush(begin + longest_flush);
            text = "All dirty data of all nodes was written back.";
        } else if (kind == "sleep") {
            machine_.advance(begin + treatment.time);
            text = "Waited.";
        } else if (kind == "drop_page_cache" || kind == "fadvise" || kind == "remount") {
            machine_.flush(begin + longest_flush);
            for (int node = 0; node < context_.tasks.nodes(); ++node) {
                machine_.drop_caches(static_cast<std::uint32_t>(node));
            }
            text = "Dropped the page caches of all nodes.";
        } else {
            outcome = "skipped";
            text = "The model has no such treatment.";
        }
        writer_->line("treatment", {{"phase", phase.id},
                                    {"kind", kind},
                                    {"need", treatment.required ? "required" : "best_effort"},
                                    {"outcome", outcome},
                                    {"seconds", seconds(machine_.now() - begin)},
                                    {"text", text},
                                    {"node", 0}});
        if (treatment.required && outcome != "done") {
            context_.at_root.outcome.set(phases::exit_environment, "phase " + phase.id + ": the required treatment " +
                                                                       kind + " cannot be simulated");
            return false;
        }
    }
    return true;
}

}  // namespace sonde::simulate
