// SPDX-License-Identifier: Apache-2.0
#include "plan/parse.hpp"

#include "plan/check.hpp"
#include "plan/check_device.hpp"
#include "plan/declare_data.hpp"
#include "plan/declare_meta.hpp"
#include "plan/declare_plan.hpp"
#include "plan/document.hpp"
#include "plan/json_io.hpp"
#include "plan/overlay.hpp"
#include "plan/table_reader.hpp"

namespace sonde::plan {
namespace {

using nlohmann::json;

/// The plan's `meta` merged with that of the phase, member by member.
json overlay_meta(const json& base, const json& own_meta) {
    json merged = base;
    for (const auto& [key, value] : own_meta.items()) {
        json& member = merged[key];
        // A schedule is replaced completely.
        const bool table = member.is_object() && value.is_object() && key != "paced";
        member = table ? overlay_members(member, value) : value;
    }
    return merged;
}

/// The plan's data merged with the members of the phase.
json overlay_data(const json& data, const Reader& phase) {
    json merged = data;
    for (const char* key : {"backend", "verify"}) {
        if (phase.has(key)) {
            merged[key] = phase.value(key);
        }
    }
    if (phase.has("suffix")) {
        merged["files"]["suffix"] = phase.value("suffix");
    }
    for (const char* key : {"access", "io"}) {
        if (phase.has(key)) {
            merged[key] = overlay_members(merged[key], phase.value(key));
        }
    }
    return merged;
}

/// Reads the tree part of a phase; its data gets the members that a tree phase needs.
void read_tree_phase(const Reader& in, const json& meta, Phase& phase) {
    for (const char* key : {"access", "io"}) {
        if (in.has(key)) {
            in.fail(key, "is for data, but this phase works on a tree: it belongs to meta");
        }
    }
    json table = in.has("meta") ? in.value("meta") : json::object();
    if (!table.is_object()) {
        in.fail("meta", "must be an object");
    }
    for (const char* key : {"backend", "verify"}) {
        if (in.has(key)) {
            table[key] = in.value(key);
        }
    }
    const json merged = overlay_meta(meta, table);
    const Reader reader(merged, table.empty() ? "meta" : in.path() + ".meta over meta");
    Meta& tree_meta = phase.meta.emplace();
    read_members(reader, [&](Visitor& visitor) { describe_meta(visitor, tree_meta, phase.data); });
}

/// Rejects a phase volume smaller than one block of the plan.
void check_volume(const Reader& in, const Access& merged) {
    const Reader access = in.object_or_empty("access");
    const bool has_own_volume = access.has("volume") && !access.has("block");
    if (has_own_volume && merged.volume && merged.volume->of == Amount::Basis::bytes &&
        merged.volume->per == Amount::Granularity::task && merged.volume->bytes > 0 &&
        merged.volume->bytes < merged.block) {
        access.fail("volume", "is " + std::to_string(merged.volume->bytes) + " B, but blocks are moved whole, and " +
                                  "data.access.block is " + std::to_string(merged.block) +
                                  " B: give the phase a block of its own");
    }
}

/// Reads the plan's data, overridden by the members of the phase.
void read_data_phase(const Reader& in, const json& data, Phase& phase) {
    if (in.has("meta")) {
        in.fail("meta", "is for operations on a tree, but op = \"" + std::string(operation_name(phase.op)) +
                            "\" works on data: say on = \"meta\"");
    }
    const bool has_data = in.has("backend") || in.has("access") || in.has("io") || in.has("verify") || in.has("suffix");
    if (has_data) {
        // Before the merge, so that errors name the phase.
        Data of_phase;
        read_table(in.object_or_empty("access"), of_phase.access);
        read_table(in.object_or_empty("io"), of_phase.io);
    }
    const json merged = overlay_data(data, in);
    read_table(Reader(merged, has_data ? in.path() + " over data" : "data"), phase.data);
    phase.data_at = has_data ? in.path() : phase.data_at;
    check_volume(in, phase.data.access);
}

}  // namespace

Plan parse_plan(std::string_view json_text, const Capabilities& capabilities) {
    const json document = parse_document(json_text);
    if (!document.is_object()) {
        throw PlanError("the plan must be a JSON object with the members schema, id, target and phases");
    }
    Plan plan;
    plan.canonical = serialize_json(document);
    const PhaseContext context{document.contains("data"), document.contains("meta"),
                               [&document](const Reader& in, Phase& phase, bool tree) {
                                   const json base = document.value(tree ? "meta" : "data", json::object());
                                   tree ? read_tree_phase(in, base, phase) : read_data_phase(in, base, phase);
                               }};
    plan.has_data = context.plan_has_data || !context.plan_has_meta;
    read_members(
        Reader(document, ""), [&](Visitor& visitor) { describe_plan(visitor, plan, context); }, capabilities);
    set_device(plan);
    check_plan(plan, capabilities);
    return plan;
}

}  // namespace sonde::plan
