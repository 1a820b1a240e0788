// SPDX-License-Identifier: Apache-2.0
#include "phases/layouts.hpp"

#include "files/layout_source.hpp"
#include "phases/phase_line.hpp"
#include "records/text.hpp"

#include <sys/stat.h>
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace sonde::phases {
namespace {

using files::LayoutComponent;
using files::StripeLayout;
using nlohmann::ordered_json;

// Each costs a request to the metadata server: a second of all, and a third of a megabyte of the record.
constexpr std::uint64_t most_files = 1024;
constexpr std::size_t most_values = 16'384;

ordered_json describe(const StripeLayout& layout) {
    ordered_json out = ordered_json::array();
    for (const LayoutComponent& component : layout.components) {
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
        out.push_back(std::move(one));
    }
    return out;
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

    bool full() const { return told >= most_files || values >= most_values; }

    /// `task` >= 0: the only one that uses the file.
    void add(const std::string& path, std::uint64_t number, int task) {
        struct stat status {};
        const auto layout = files::layout_of(path);
        if (!layout || stat(path.c_str(), &status) != 0) {
            return;
        }
        kind = layout->kind;
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
        rows.push_back({number, task >= 0 ? ordered_json(task) : ordered_json(nullptr), size, place, std::move(held)});
    }
};

ordered_json line_of(const Layouts& found) {
    ordered_json line{{"kind", found.kind}, {"files", found.files}, {"told", found.told}, {"shapes", found.shapes}};
    line["columns"] = {"file", "task", "bytes", "shape", "targets"};
    line["rows"] = found.rows;
    line["target_columns"] = {"target", "files", "bytes"};
    line["targets"] = ordered_json::array();
    for (const auto& [target, sum] : found.targets) {
        line["targets"].push_back({records::json_text(target), sum.files, sum.bytes});
    }
    return line;
}

}  // namespace

void write_layouts(const Context& context, std::size_t index, const files::FileMap& map) {
    const plan::Phase& phase = context.plan.phases[index];
    if (phase.meta || !context.storage.makes_files || !files::has_layouts(context.storage.file_system)) {
        return;
    }
    Layouts found;
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
        context.at_root.record->line(
            "finding",
            of_phase(phase, index,
                     {{"id", "layout_unreadable"},
                      {"severity", "info"},
                      {"text", std::string(reason.what()) + ": which target holds which byte is not known"},
                      {"advice", "please report this with the output of `getfattr -e hex -n lustre.lov FILE`"}}));
        return;
    }
    if (found.told > 0) {
        context.at_root.record->line("layout", of_phase(phase, index, line_of(found)));
    }
}

}  // namespace sonde::phases
