// SPDX-License-Identifier: Apache-2.0
#include "phases/layout_line.hpp"

#include "layouts/layout_queries.hpp"
#include "layouts/striping.hpp"
#include "phases/result_lines.hpp"
#include "records/text.hpp"

#include <sys/stat.h>
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace sonde::phases {
namespace {

using layouts::LayoutComponent;
using layouts::StripeLayout;
using nlohmann::ordered_json;

// About 300 kB of the record.
constexpr std::size_t max_values = 16'384;

ordered_json describe_component(const StripeLayout& layout) {
    ordered_json out = ordered_json::array();
    for (const LayoutComponent& component :
         layout.volume_components.empty() ? layout.components : layout.volume_components) {
        ordered_json row{{"pattern", layouts::pattern_name(component.pattern)}, {"start", component.start}};
        if (component.end != ~0ULL) {
            row["end"] = component.end;
        }
        if (component.stripe_bytes > 0) {
            row["stripe_bytes"] = component.stripe_bytes;
        }
        row["stripe_count"] = component.requested_stripes;
        if (!component.pool.empty()) {
            row["pool"] = records::to_json_text(component.pool);
        }
        if (component.is_stale) {
            row["stale"] = true;
        }
        for (const std::string& member : component.target_members) {
            row["members"].push_back(records::to_json_text(member));
        }
        out.push_back(std::move(row));
    }
    return out;
}

/// The requested striping, in the members of a shape.
ordered_json striping_to_text(const plan::Striping& striping) {
    ordered_json out = ordered_json::object();
    if (striping.count) {
        out["stripe_count"] = *striping.count;
    }
    if (striping.size) {
        out["stripe_bytes"] = *striping.size;
    }
    if (!striping.pool.empty()) {
        out["pool"] = records::to_json_text(striping.pool);
    }
    if (striping.start) {
        out["start"] = *striping.start;
    }
    return out;
}

/// Extents of the file on the device; null when there are more than were examined.
void add_extents(ordered_json& row, const layouts::FileExtents& layouts) {
    for (const std::uint64_t value :
         {layouts.extent_count, layouts.fragment_count, layouts.longest_bytes, layouts.unplaced_bytes}) {
        row.push_back(layouts.are_all_known ? ordered_json(value) : ordered_json(nullptr));
    }
}

struct TargetSum {
    std::uint64_t file_count = 0, bytes = 0;
};

/// Collects the content of the line, file by file.
struct LayoutCollector {
    std::uint64_t file_count = 0, reported_files = 0;
    std::size_t reported_values = 0;
    std::string kind;
    std::vector<ordered_json> shapes;
    ordered_json rows = ordered_json::array();
    std::map<std::string, TargetSum> targets;
    const std::optional<plan::Striping>* striping = nullptr;
    const layouts::CephPlacement* placement = nullptr;
    std::uint64_t max_files = 0;
    std::uint64_t differing_files = 0;  ///< files whose striping differs from the request
    std::string first_difference;       ///< description of the first difference
    std::string reason_unknown;         ///< facts about the last such file that cannot be read

    bool is_full() const { return reported_files >= max_files || reported_values >= max_values; }

    /// `task` >= 0: the only task that uses the file.
    void add(const std::string& path, std::uint64_t number, int task) {
        struct stat status {};
        const auto layout = layouts::read_layout(path, placement);
        if (!layout || stat(path.c_str(), &status) != 0) {
            return;
        }
        kind = layout->kind;
        reason_unknown = layout->unknown_facts.empty() ? reason_unknown : layout->unknown_facts;
        if (const std::string differs = *striping ? layouts::describe_difference(**striping, *layout) : std::string();
            !differs.empty()) {
            if (differing_files++ == 0) {
                first_difference = differs;
            }
        }
        ordered_json shape = describe_component(*layout);
        const auto same = std::find(shapes.begin(), shapes.end(), shape);
        const auto shape_index = same - shapes.begin();
        if (same == shapes.end()) {
            shapes.push_back(std::move(shape));
        }
        const auto size = static_cast<std::uint64_t>(status.st_size);
        ordered_json held = ordered_json::array();
        for (const auto& [target, bytes] : layouts::compute_bytes_by_target(*layout, size)) {
            held.push_back({records::to_json_text(target), bytes});
            ++targets[target].file_count;
            targets[target].bytes += bytes;
        }
        reported_values += 1 + held.size();
        ++reported_files;
        ordered_json row = {number, task >= 0 ? ordered_json(task) : ordered_json(nullptr), size, shape_index,
                            std::move(held)};
        if (layout->extents) {
            add_extents(row, *layout->extents);
        }
        rows.push_back(std::move(row));
    }
};

ordered_json make_line(const LayoutCollector& layouts) {
    ordered_json line{{"kind", layouts.kind},
                      {"files", layouts.file_count},
                      {"reported", layouts.reported_files},
                      {"shapes", layouts.shapes}};
    if (*layouts.striping) {
        line["requested"] = striping_to_text(**layouts.striping);
    }
    line["columns"] = {"file", "task", "bytes", "shape", "targets"};
    if (layouts.kind == "local") {
        line["columns"].insert(line["columns"].end(), {"extents", "fragments", "longest_bytes", "unplaced_bytes"});
    }
    line["rows"] = layouts.rows;
    line["target_columns"] = {"target", "files", "bytes"};
    line["targets"] = ordered_json::array();
    for (const auto& [target, sum] : layouts.targets) {
        line["targets"].push_back({records::to_json_text(target), sum.file_count, sum.bytes});
    }
    return line;
}

ordered_json make_unreadable_finding(const std::string& reason, const std::string& advice) {
    ordered_json finding{{"id", "layout_unreadable"},
                         {"severity", "info"},
                         {"text", records::to_json_text("which target holds which byte is not known: " + reason)}};
    if (!advice.empty()) {
        finding["advice"] = advice;
    }
    return finding;
}

/// The finding about missing layout facts; absent when the layouts are complete or unsupported.
std::optional<ordered_json> make_layout_finding(const RunContext& context, const LayoutCollector& layouts,
                                                const std::string& first_file) {
    if (layouts.reported_files == 0) {
        const layouts::MissingLayout missing = layouts::explain_missing_layout(first_file, context.storage.file_system);
        return missing.reason.empty() ? std::nullopt
                                      : std::optional(make_unreadable_finding(missing.reason, missing.advice));
    }
    const std::string why = layouts.placement != nullptr ? layouts.placement->why_unknown() : std::string();
    if (why.empty()) {
        return std::nullopt;
    }
    return ordered_json{
        {"id", "placement_unknown"},
        {"severity", "info"},
        {"text", records::to_json_text("which OSD holds which byte is not known, so the pool stands for "
                                       "all of them: " +
                                       why)},
        {"advice", "let `ceph` ask the monitors from the first node of the run"}};
}

/// The finding that a pool is reported as target instead of one of its disks.
ordered_json make_pool_finding(const std::string& why) {
    return {{"id", "placement_unknown"},
            {"severity", "info"},
            {"text", records::to_json_text("the pool stands for all of its disks: " + why)},
            {"advice",
             "`mmdiag --iohist` on a server shows which of its disks is slow, `mmfileid` (root) whose blocks it has"}};
}

/// The finding about striping that differs from the request or cannot be read.
ordered_json make_striping_finding(const LayoutCollector& layouts) {
    if (layouts.reported_files == 0) {
        return {{"id", "striping_unknown"},
                {"severity", "info"},
                {"text",
                 "the plan asks for stripes (target.striping), but the layout of no file can be read: what was "
                 "granted is not known"},
                {"advice", "look at one with the file system's own tools"}};
    }
    return {{"id", "striping_differs"},
            {"severity", "warning"},
            {"text", std::to_string(layouts.differing_files) + " of " + std::to_string(layouts.reported_files) +
                         " files were not striped as target.striping asks; the first has " + layouts.first_difference},
            {"advice", "ask for what the file system can grant, and compare by what it granted (line `layout`)"}};
}

}  // namespace

bool may_have_layouts(const RunContext& context, const plan::Phase& phase) {
    return !phase.meta && context.storage.makes_files && layouts::has_layouts(context.storage.file_system);
}

void query_placement(RunContext& context, const plan::Phase& phase) {
    if (context.placement || !may_have_layouts(context, phase) ||
        !layouts::needs_placement(context.storage.file_system)) {
        return;
    }
    const layouts::CephPlacement striping =
        context.is_root() ? layouts::query_ceph_placement() : layouts::CephPlacement();
    const std::string placement_text = context.team.broadcast(context.is_root() ? striping.to_json_text() : "");
    context.placement = context.is_root() ? striping : layouts::CephPlacement::from_json_text(placement_text);
}

void write_layouts(const RunContext& context, std::size_t index, const files::FileMap& map) {
    const plan::Phase& phase = context.plan.phases[index];
    if (!may_have_layouts(context, phase)) {
        return;
    }
    const std::optional<plan::Striping>& striping = context.plan.target.striping;
    LayoutCollector layouts;
    layouts.striping = &striping;
    layouts.placement = context.ceph_placement();
    layouts.max_files = layouts::max_layout_queries(context.storage.file_system);
    layouts.file_count = map.distinct_files();
    const auto mapping = map.files().mapping;
    const bool by_task =
        mapping == plan::Mapping::per_task || mapping == plan::Mapping::many || context.tasks.tasks() == 1;
    try {
        for (int task = 0; task < context.tasks.tasks() && !layouts.is_full(); ++task) {
            for (int k = 0; k < map.files_per_task() && map.is_first_task_of_file(task) && !layouts.is_full(); ++k) {
                layouts.add(map.path(task, k), map.file_number(task, k), by_task ? task : -1);
            }
        }
    } catch (const std::invalid_argument& reason) {
        const char* advice = "please report this with the output of `getfattr -e hex -n lustre.lov FILE`";
        context.root_state.record->write_line(
            "finding", with_phase_members(phase, index, make_unreadable_finding(reason.what(), advice)));
        return;
    } catch (const std::runtime_error& reason) {
        const char* advice = "see why the file system's own tool does not answer; the other files were not asked for";
        context.root_state.record->write_line(
            "finding", with_phase_members(phase, index, make_unreadable_finding(reason.what(), advice)));
        return;
    }
    if (layouts.reported_files > 0) {
        context.root_state.record->write_line("layout", with_phase_members(phase, index, make_line(layouts)));
    }
    if (!layouts.reason_unknown.empty()) {
        context.root_state.record->write_line(
            "finding", with_phase_members(phase, index, make_pool_finding(layouts.reason_unknown)));
    }
    if (const auto finding = make_layout_finding(context, layouts, map.path(0, 0))) {
        context.root_state.record->write_line("finding", with_phase_members(phase, index, *finding));
    }
    if (striping && phase.op == plan::Op::write && (layouts.reported_files == 0 || layouts.differing_files > 0)) {
        context.root_state.record->write_line("finding",
                                              with_phase_members(phase, index, make_striping_finding(layouts)));
    }
}

}  // namespace sonde::phases
