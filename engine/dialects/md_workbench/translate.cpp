// SPDX-License-Identifier: Apache-2.0
#include "dialects/md_workbench/translate.hpp"

#include "plan/plan_error.hpp"

#include <algorithm>
#include <filesystem>

namespace sonde::dialects::md_workbench {
namespace {

using nlohmann::ordered_json;

const char* packet_kind(const std::string& letter) {
    return letter == "o"   ? "ior_offset"
           : letter == "i" ? "ior_incompressible"
           : letter == "r" ? "ior_random"
                           : "ior_timestamp";
}

/// More numbers than any run comes to: names do not depend on which phases a command line has.
std::uint64_t max_items_per_directory(const WorkbenchSettings& s) {
    return std::min<std::uint64_t>(1'000'000'000, 1'000'000'000'000 / static_cast<std::uint64_t>(s.sets));
}

ordered_json build_meta_member(const WorkbenchSettings& s, std::int64_t seed) {
    ordered_json meta{{"backend", s.api == "DUMMY" ? "null" : "posix"}};
    meta["tree"] = {
        {"top", "set"}, {"copies", s.sets}, {"scope", "per_task"}, {"items_per_dir", max_items_per_directory(s)}};
    meta["names"] = {{"branch", "rank"}, {"file", "file"}, {"directory", "dir"}};
    meta["objects"] = "files";
    meta["file"] = {{"write", s.size}, {"read", s.size}, {"exclusive", false}};
    if (s.direct) {
        meta["file"]["direct"] = true;
    }
    meta["lookup"] = {{"stat", "stat"}, {"paths", "full"}};
    meta["payload"] = {{"kind", packet_kind(s.packets)}, {"seed", static_cast<std::uint32_t>(seed)}};
    return meta;
}

ordered_json make_item_window(std::uint64_t first, std::uint64_t count, bool across) {
    return {{"window", {{"first", first}, {"count", count}, {"across", across}}}};
}

ordered_json build_phase_list(const WorkbenchSettings& s, const WorkbenchStep& step) {
    ordered_json phases = ordered_json::array();
    if (step.phase == PhaseKind::precreate) {
        phases.push_back({{"id", id_sets}, {"op", "mktree"}});
        // As md-workbench has it: from the first number on to the size of the working set.
        const std::uint64_t count = s.precreate > step.first ? s.precreate - step.first : 0;
        if (count > 0) {
            phases.push_back(
                {{"id", id_objects}, {"op", "create"}, {"meta", make_item_window(step.first, count, true)}});
        }
    } else if (step.phase == PhaseKind::benchmark) {
        ordered_json phase{{"id", id_cycle}, {"op", "cycle"}, {"meta", make_item_window(step.first, s.objects, true)}};
        phase["meta"]["cycle"] = {
            {"working", s.precreate}, {"spread", s.spread}, {"keep", s.read_only}, {"wait", step.wait}};
        if (s.verify) {
            phase["verify"] = "on_read";
        }
        if (s.stonewall_s > 0) {
            phase["stop"] = {{"stonewall", std::to_string(s.stonewall_s) + "s"}, {"wearout", true}};
        }
        phases.push_back(phase);
    } else {
        phases.push_back({{"id", id_remove},
                          {"op", "remove"},
                          {"on", "meta"},
                          {"meta", make_item_window(step.first, s.precreate, false)}});
        phases.push_back({{"id", id_remove_sets}, {"op", "rmtree"}});
    }
    return phases;
}

}  // namespace

const char* get_phase_name(PhaseKind phase) {
    return phase == PhaseKind::precreate ? "precreate" : phase == PhaseKind::benchmark ? "benchmark" : "cleanup";
}

ordered_json build_plan(const WorkbenchSettings& s, const WorkbenchStep& step, std::int64_t seed, bool exists) {
    namespace fs = std::filesystem;
    std::error_code failure;
    fs::path directory = fs::weakly_canonical(fs::absolute(s.directory, failure), failure);
    if (!directory.has_filename()) {
        directory = directory.parent_path();
    }
    if (failure || directory == directory.root_path()) {
        throw plan::PlanError("-o " + s.directory + " must name a directory below the root");
    }
    ordered_json plan{{"schema", "sonde-plan/2"}, {"id", "md-workbench"}};
    plan["title"] = std::string("md-workbench ") + get_phase_name(step.phase) + " in " + s.directory;
    plan["target"] = {{"path", directory.parent_path().string()},
                      {"directory", directory.filename().string()},
                      {"keep", true},
                      {"keep_manifest", false},
                      {"use_existing", exists},
                      {"min_free", 0}};
    plan["meta"] = build_meta_member(s, seed);
    plan["phases"] = build_phase_list(s, step);
    return plan;
}

}  // namespace sonde::dialects::md_workbench
