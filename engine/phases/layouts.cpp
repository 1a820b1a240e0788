// SPDX-License-Identifier: Apache-2.0
#include "phases/layouts.hpp"

#include "files/layout_source.hpp"
#include "files/striping.hpp"
#include "phases/phase_line.hpp"
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

using files::LayoutComponent;
using files::StripeLayout;
using nlohmann::ordered_json;

// A third of a megabyte of the record.
constexpr std::size_t most_values = 16'384;

ordered_json describe(const StripeLayout& layout) {
    ordered_json out = ordered_json::array();
    for (const LayoutComponent& component : layout.volume.empty() ? layout.components : layout.volume) {
        ordered_json one{{"pattern", files::pattern_word(component.pattern)}, {"start", component.start}};
        if (component.end != ~0ULL) {
            one["end"] = component.end;
        }
        if (component.stripe > 0) {
            one["stripe_bytes"] = component.stripe;
        }
        one["stripe_count"] = component.count;
        if (!component.pool.empty()) {
            one["pool"] = records::json_text(component.pool);
        }
        if (component.stale) {
            one["stale"] = true;
        }
        for (const std::string& member : component.members) {
            one["members"].push_back(records::json_text(member));
        }
        out.push_back(std::move(one));
    }
    return out;
}

/// What target.striping says, in the members of a shape.
ordered_json words_of(const plan::Striping& asked) {
    ordered_json out = ordered_json::object();
    if (asked.count) {
        out["stripe_count"] = *asked.count;
    }
    if (asked.size) {
        out["stripe_bytes"] = *asked.size;
    }
    if (!asked.pool.empty()) {
        out["pool"] = records::json_text(asked.pool);
    }
    if (asked.start) {
        out["start"] = *asked.start;
    }
    return out;
}

/// How the file lies on the device: null where there are more extents than were looked at.
void put_extents(ordered_json& row, const files::FileExtents& found) {
    for (const std::uint64_t value : {found.extents, found.fragments, found.longest_bytes, found.unplaced_bytes}) {
        row.push_back(found.all ? ordered_json(value) : ordered_json(nullptr));
    }
}

struct TargetSum {
    std::uint64_t files = 0, bytes = 0;
};

/// Everything that the line says, file by file.
struct Layouts {
    std::uint64_t files = 0, told = 0;
    std::size_t values = 0;
    std::string kind;
    std::vector<ordered_json> shapes;
    ordered_json rows = ordered_json::array();
    std::map<std::string, TargetSum> targets;
    const std::optional<plan::Striping>* asked = nullptr;
    const files::CephPlacement* placement = nullptr;
    std::uint64_t most_files = 0;
    std::uint64_t otherwise = 0;   ///< files that lie otherwise than asked
    std::string first_difference;  ///< of the first of them, in words
    std::string unknown;           ///< what nobody tells of the last file that has such a thing

    bool full() const { return told >= most_files || values >= most_values; }

    /// `task` >= 0: the only one that uses the file.
    void add(const std::string& path, std::uint64_t number, int task) {
        struct stat status {};
        const auto layout = files::layout_of(path, placement);
        if (!layout || stat(path.c_str(), &status) != 0) {
            return;
        }
        kind = layout->kind;
        unknown = layout->unknown.empty() ? unknown : layout->unknown;
        if (const std::string differs = *asked ? files::difference(**asked, *layout) : std::string();
            !differs.empty()) {
            if (otherwise++ == 0) {
                first_difference = differs;
            }
        }
        ordered_json shape = describe(*layout);
        const auto same = std::find(shapes.begin(), shapes.end(), shape);
        const auto place = same - shapes.begin();
        if (same == shapes.end()) {
            shapes.push_back(std::move(shape));
        }
        const auto size = static_cast<std::uint64_t>(status.st_size);
        ordered_json held = ordered_json::array();
        for (const auto& [target, bytes] : files::bytes_on_targets(*layout, size)) {
            held.push_back({records::json_text(target), bytes});
            ++targets[target].files;
            targets[target].bytes += bytes;
        }
        values += 1 + held.size();
        ++told;
        ordered_json row = {number, task >= 0 ? ordered_json(task) : ordered_json(nullptr), size, place,
                            std::move(held)};
        if (layout->extents) {
            put_extents(row, *layout->extents);
        }
        rows.push_back(std::move(row));
    }
};

ordered_json line_of(const Layouts& found) {
    ordered_json line{{"kind", found.kind}, {"files", found.files}, {"told", found.told}, {"shapes", found.shapes}};
    if (*found.asked) {
        line["asked"] = words_of(**found.asked);
    }
    line["columns"] = {"file", "task", "bytes", "shape", "targets"};
    if (found.kind == "local") {
        line["columns"].insert(line["columns"].end(), {"extents", "fragments", "longest_bytes", "unplaced_bytes"});
    }
    line["rows"] = found.rows;
    line["target_columns"] = {"target", "files", "bytes"};
    line["targets"] = ordered_json::array();
    for (const auto& [target, sum] : found.targets) {
        line["targets"].push_back({records::json_text(target), sum.files, sum.bytes});
    }
    return line;
}

ordered_json unreadable(const std::string& reason, const std::string& advice) {
    ordered_json finding{{"id", "layout_unreadable"},
                         {"severity", "info"},
                         {"text", records::json_text("which target holds which byte is not known: " + reason)}};
    if (!advice.empty()) {
        finding["advice"] = advice;
    }
    return finding;
}

/// The finding that the layouts tell less than they could; absent where they tell all, or there is nothing to tell.
std::optional<ordered_json> not_told(const Context& context, const Layouts& found, const std::string& first_file) {
    if (found.told == 0) {
        const files::Untold untold = files::why_untold(first_file, context.storage.file_system);
        return untold.why.empty() ? std::nullopt : std::optional(unreadable(untold.why, untold.advice));
    }
    const std::string why = found.placement != nullptr ? found.placement->why_unknown() : std::string();
    if (why.empty()) {
        return std::nullopt;
    }
    return ordered_json{{"id", "placement_unknown"},
                        {"severity", "info"},
                        {"text", records::json_text("which OSD holds which byte is not known, so the pool stands for "
                                                    "all of them: " +
                                                    why)},
                        {"advice", "let `ceph` ask the monitors from the first node of the run"}};
}

/// The finding that a pool stands as the target where one of its disks is.
ordered_json pool_stands(const std::string& why) {
    return {{"id", "placement_unknown"},
            {"severity", "info"},
            {"text", records::json_text("the pool stands for all of its disks: " + why)},
            {"advice",
             "`mmdiag --iohist` on a server shows which of its disks is slow, `mmfileid` (root) whose blocks it has"}};
}

/// The finding about stripes that were not granted as asked, or whose grant nobody can read.
ordered_json not_as_asked(const Layouts& found) {
    if (found.told == 0) {
        return {{"id", "striping_unknown"},
                {"severity", "info"},
                {"text",
                 "the plan asks for stripes (target.striping), but the layout of no file can be read: what was "
                 "granted is not known"},
                {"advice", "look at one with the file system's own tools"}};
    }
    return {{"id", "striping_differs"},
            {"severity", "warning"},
            {"text", std::to_string(found.otherwise) + " of " + std::to_string(found.told) +
                         " files were not striped as target.striping asks; the first has " + found.first_difference},
            {"advice", "ask for what the file system can grant, and compare by what it granted (line `layout`)"}};
}

}  // namespace

bool may_have_layouts(const Context& context, const plan::Phase& phase) {
    return !phase.meta && context.storage.makes_files && files::has_layouts(context.storage.file_system);
}

void ask_placement(Context& context, const plan::Phase& phase) {
    if (context.placement || !may_have_layouts(context, phase) || !files::has_placement(context.storage.file_system)) {
        return;
    }
    const files::CephPlacement asked = context.root() ? files::ask_ceph_placement() : files::CephPlacement();
    const std::string told = context.team.broadcast(context.root() ? asked.to_text() : "");
    context.placement = context.root() ? asked : files::CephPlacement::from_text(told);
}

void write_layouts(const Context& context, std::size_t index, const files::FileMap& map) {
    const plan::Phase& phase = context.plan.phases[index];
    if (!may_have_layouts(context, phase)) {
        return;
    }
    const std::optional<plan::Striping>& asked = context.plan.target.striping;
    Layouts found;
    found.asked = &asked;
    found.placement = context.placed();
    found.most_files = files::most_layouts(context.storage.file_system);
    found.files = map.distinct_files();
    const auto mapping = map.files().mapping;
    const bool own = mapping == plan::Mapping::per_task || mapping == plan::Mapping::many || context.tasks.tasks() == 1;
    try {
        for (int task = 0; task < context.tasks.tasks() && !found.full(); ++task) {
            for (int k = 0; k < map.files_per_task() && map.first_of_file(task) && !found.full(); ++k) {
                found.add(map.path(task, k), map.file_number(task, k), own ? task : -1);
            }
        }
    } catch (const std::invalid_argument& reason) {
        const char* advice = "please report this with the output of `getfattr -e hex -n lustre.lov FILE`";
        context.at_root.record->line("finding", of_phase(phase, index, unreadable(reason.what(), advice)));
        return;
    } catch (const std::runtime_error& reason) {
        const char* advice = "see why the file system's own tool does not answer; the other files were not asked for";
        context.at_root.record->line("finding", of_phase(phase, index, unreadable(reason.what(), advice)));
        return;
    }
    if (found.told > 0) {
        context.at_root.record->line("layout", of_phase(phase, index, line_of(found)));
    }
    if (!found.unknown.empty()) {
        context.at_root.record->line("finding", of_phase(phase, index, pool_stands(found.unknown)));
    }
    if (const auto finding = not_told(context, found, map.path(0, 0))) {
        context.at_root.record->line("finding", of_phase(phase, index, *finding));
    }
    if (asked && phase.op == plan::Op::write && (found.told == 0 || found.otherwise > 0)) {
        context.at_root.record->line("finding", of_phase(phase, index, not_as_asked(found)));
    }
}

}  // namespace sonde::phases
