// SPDX-License-Identifier: Apache-2.0
#include "virtual/unused_members.hpp"

#include <map>
#include <set>

namespace sonde::simulate {
namespace {

constexpr const char* no_content = "the model stores no content";
constexpr const char* no_processes = "the model has no processes and processors";
constexpr const char* equal_cost = "in the model these calls cost the same";
constexpr const char* no_failures = "a call of the model moves all of its bytes";
constexpr const char* no_aggregation = "the model has no library that gathers the calls of several tasks";
constexpr const char* no_format = "the model has plain files without the metadata of a format";
constexpr const char* no_gpus = "the model has no GPUs";
constexpr const char* no_clock = "virtual time has no limit";
constexpr const char* no_files = "the model writes no files of its own";

using Reasons = std::map<std::string, std::set<std::string>>;  ///< reason -> members

void add_data_members(Reasons& reasons, const plan::Data& data, const std::string& table) {
    const plan::Data defaults;
    const auto add = [&](bool is_set, const char* reason, const char* member) {
        if (is_set) {
            reasons[reason].insert(table + member);
        }
    };
    add(data.verify != defaults.verify, no_content, ".verify");
    add(data.payload.kind != defaults.payload.kind, no_content, ".payload.kind");
    add(data.payload.seed != defaults.payload.seed, no_content, ".payload.seed");
    add(data.payload.period != defaults.payload.period, no_content, ".payload.period");
    add(data.payload.compressible > 0, no_content, ".payload.compressible");
    add(data.payload.duplicates > 0, no_content, ".payload.duplicates");
    add(data.files.directories != defaults.files.directories, equal_cost, ".files.directories");
    add(data.io.registered != defaults.io.registered, equal_cost, ".io.registered");
    add(data.io.sqpoll, equal_cost, ".io.sqpoll");
    add(data.io.iopoll, equal_cost, ".io.iopoll");
    add(data.io.collective, no_aggregation, ".io.collective");
    add(data.io.view, no_aggregation, ".io.view");
    add(!data.io.gpus.empty(), no_gpus, ".io.gpus");
    add(!data.io.hints.empty(), no_aggregation, ".io.hints");
    add(data.io.chunk > 0, no_format, ".io.chunk");
    add(data.io.alignment > 0, no_format, ".io.alignment");
    add(data.io.collective_metadata, no_format, ".io.collective_metadata");
    add(data.io.continue_short != defaults.io.continue_short, no_failures, ".io.continue_short");
}

void add_tree_members(Reasons& reasons, const plan::Meta& meta) {
    const plan::Meta defaults;
    if (meta.stat_call != defaults.stat_call) {
        reasons[equal_cost].insert("meta.lookup.stat");
    }
    if (meta.statx_fields != defaults.statx_fields) {
        reasons[equal_cost].insert("meta.lookup.fields");
    }
    if (meta.statx_sync_flag != defaults.statx_sync_flag) {
        reasons[equal_cost].insert("meta.lookup.freshness");
    }
    if (meta.path_kind != defaults.path_kind) {
        reasons[equal_cost].insert("meta.lookup.paths");
    }
}

}  // namespace

std::vector<std::string> find_unused_members(const plan::Plan& plan) {
    Reasons reasons;
    if (plan.tasks.pin) {
        reasons[no_processes].insert("tasks.pin");
    }
    if (plan.time_limit) {
        reasons[no_clock].insert("limits.time");
    }
    for (const plan::Phase& phase : plan.phases) {
        add_data_members(reasons, phase.data, phase.meta ? "meta" : "data");
        if (phase.meta) {
            add_tree_members(reasons, *phase.meta);
        }
        if (phase.separate_process) {
            reasons[no_processes].insert("phases.process");
        }
        if (phase.unless_mismatch) {
            reasons[no_content].insert("phases.unless_mismatch");
        }
        if (!phase.operations_file.empty()) {
            reasons[no_files].insert("phases.operations_file");
        }
    }
    std::vector<std::string> sentences;
    for (const auto& [reason, members] : reasons) {
        std::string names;
        for (const std::string& member : members) {
            names += (names.empty() ? "" : ", ") + member;
        }
        sentences.push_back("the model does not use " + names + ": " + reason);
    }
    return sentences;
}

}  // namespace sonde::simulate
