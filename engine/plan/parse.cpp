// SPDX-License-Identifier: Apache-2.0
#include "plan/parse.hpp"

#include "plan/check.hpp"
#include "plan/choices.hpp"
#include "plan/document.hpp"
#include "plan/parse_data.hpp"
#include "plan/parse_meta.hpp"
#include "plan/reader.hpp"

namespace sonde::plan {
namespace {

using nlohmann::json;
using namespace choices;

Treatment read_treatment(const Reader& in, const Capabilities& capabilities) {
    std::vector<std::string_view> kinds;
    for (const TreatmentCapability& rule : capabilities.treatments) {
        kinds.push_back(rule.name);
    }
    Treatment treatment;
    treatment.kind = in.read_name("kind", kinds);
    treatment.required = in.choice("need", needs, treatment.required);
    treatment.time = in.duration("time", treatment.time);
    treatment.fraction = in.number("fraction", treatment.fraction, 0.0, 0.95);
    treatment.command = in.text("command", treatment.command);
    treatment.max_residency = in.number("max_residency", treatment.max_residency, 0.0, 1.0);
    in.reject_unknown_members();
    return treatment;
}

Stop read_stop(const Reader& in) {
    Stop stop;
    const auto some_time = [&in](const char* key) {
        const std::optional<Nanoseconds> value = in.duration(key);
        if (value == 0) {
            in.fail(key, "must be more than zero");
        }
        return value;
    };
    stop.time = some_time("time");
    stop.stonewall = some_time("stonewall");
    stop.min_time = some_time("min_time");
    stop.wearout = in.boolean("wearout", stop.wearout);
    stop.first_done = in.boolean("first_done", stop.first_done);
    stop.operations = in.integer("operations", 1, INT64_MAX);
    stop.items = in.integer("items", 1, INT64_MAX);
    stop.within = in.text("within", stop.within);
    in.reject_unknown_members();
    return stop;
}

DuplexStream read_stream(const Reader& in) {
    DuplexStream stream;
    stream.id = in.text("id");
    stream.write = in.choice("op", stream_ops);
    stream.tasks = in.choice("tasks", stream_tasks, stream.tasks);
    stream.file = static_cast<int>(in.integer("file", stream.file, 0, 1 << 30));
    in.reject_unknown_members();
    return stream;
}

/// Reads the tree part of a phase; `data` gets the members that a tree phase needs.
void read_tree_phase(const Reader& in, const json& meta, Phase& phase) {
    for (const char* key : {"access", "io"}) {
        if (in.has(key)) {
            in.fail(key, "is for data, but this phase works on a tree: it belongs to meta");
        }
    }
    json own = in.has("meta") ? in.value("meta") : json::object();
    if (!own.is_object()) {
        in.fail("meta", "must be an object");
    }
    for (const char* key : {"backend", "verify"}) {
        if (in.has(key)) {
            own[key] = in.value(key);
        }
    }
    const json merged = overlay_meta(meta, own);
    const std::string path = own.empty() ? "meta" : in.path() + ".meta over meta";
    phase.meta = read_meta(Reader(merged, path));
    const json data = derive_data(merged, *phase.meta);
    phase.data = read_data(Reader(data, path));
}

/// Whether the phase works on a tree: from `on`, else from the operation, else from the parts of the plan.
bool is_tree_phase(const Reader& in, bool plan_has_data, bool plan_has_meta) {
    const std::string op = in.has("op") && in.value("op").is_string() ? in.text("op") : std::string();
    const bool of_tree = find_operation(op, true).has_value();
    const bool tree_only = of_tree && !find_operation(op, false);
    const bool tree = in.choice("on", subjects, tree_only || (of_tree && plan_has_meta && !plan_has_data));
    if (tree_only && !tree) {
        in.fail("on", "is \"data\", but op = \"" + op + "\" works on a tree: leave it out");
    }
    return tree;
}

/// Rejects a phase volume smaller than one block of the plan.
void check_volume(const Reader& in, const Access& merged) {
    const Reader own = in.object_or_empty("access");
    const bool has_own_volume = own.has("volume") && !own.has("block");
    if (has_own_volume && merged.volume && merged.volume->of == Amount::Of::bytes &&
        merged.volume->per == Amount::Per::task && merged.volume->bytes > 0 && merged.volume->bytes < merged.block) {
        own.fail("volume", "is " + std::to_string(merged.volume->bytes) + " B, but blocks are moved whole, and " +
                               "data.access.block is " + std::to_string(merged.block) +
                               " B: give the phase a block of its own");
    }
}

Phase read_phase(const Reader& in, const json& data, const json& document, const Capabilities& capabilities) {
    Phase phase;
    phase.id = in.identifier("id");
    const bool tree = is_tree_phase(in, document.contains("data"), document.contains("meta"));
    phase.op = find_operation(in.read_name("op", list_operation_names(tree)), tree).value();
    phase.data_of = in.text("data_of", phase.data_of);
    if (in.has("files")) {
        for (const Reader& file : in.array("files")) {
            phase.files.push_back(static_cast<int>(file.self_integer(0, 1 << 30)));
        }
    }
    phase.open = in.choice("open", opens, phase.op == Op::write ? Open::truncate : Open::overwrite);
    phase.separate_process = in.choice("process", process_kinds, phase.separate_process);
    phase.measured = in.boolean("measure", phase.measured);
    phase.operations_file = in.text("operations_file", phase.operations_file);
    phase.unless_mismatch = in.boolean("unless_mismatch", phase.unless_mismatch);
    phase.barrier = in.choice("barrier", barriers, phase.barrier);
    const Reader shift = in.object_or_empty("shift");
    phase.shift.by = shift.choice("by", shifts, phase.shift.by);
    phase.shift.n = static_cast<int>(shift.integer("n", phase.shift.n, -(1 << 30), 1 << 30));
    phase.shift.seed = shift.seed(phase.shift.seed);
    for (const Reader& owner : shift.list("owners")) {
        phase.shift.owners.push_back(static_cast<int>(owner.self_integer(0, 1 << 30)));
    }
    shift.reject_unknown_members();
    phase.stop = read_stop(in.object_or_empty("stop"));
    const Reader valid = in.object_or_empty("valid");
    phase.valid.min_time = valid.duration("min_time");
    phase.valid.max_residency = valid.number("max_residency", 0.0, 1.0);
    valid.reject_unknown_members();
    for (const Reader& treatment : in.list("before")) {
        phase.before.push_back(read_treatment(treatment, capabilities));
    }
    if (in.has("streams")) {
        for (const Reader& stream : in.array("streams")) {
            phase.streams.push_back(read_stream(stream));
        }
    }
    if (tree) {
        read_tree_phase(in, document.contains("meta") ? document.at("meta") : json::object(), phase);
        in.reject_unknown_members();
        return phase;
    }
    if (in.has("meta")) {
        in.fail("meta", "is for operations on a tree, but op = \"" + std::string(text(phase.op)) +
                            "\" works on data: say on = \"meta\"");
    }
    const bool own = in.has("backend") || in.has("access") || in.has("io") || in.has("verify") || in.has("suffix");
    if (own) {
        check_phase_data(in);
    }
    const json merged = overlay_data(data, in);
    phase.data = read_data(Reader(merged, own ? in.path() + " over data" : "data"));
    phase.data_at = own ? in.path() : phase.data_at;
    check_volume(in, phase.data.access);
    in.reject_unknown_members({"backend", "access", "io", "verify", "suffix"});
    return phase;
}

Striping read_striping(const Reader& in) {
    constexpr std::int64_t step = 65536;
    Striping striping;
    striping.count = in.integer("count", -1, 65534);
    if (striping.count == 0) {
        in.fail("count", "is 0: say how many targets a file gets, or -1 for all");
    }
    striping.size = in.bytes("size");
    if (striping.size && (*striping.size == 0 || *striping.size % step != 0 || *striping.size > UINT32_MAX)) {
        in.fail("size", "must be a multiple of 64 KiB below 4 GiB");
    }
    striping.pool = in.text("pool", striping.pool);
    if (striping.pool.find_first_of(std::string("\0 /\n", 4)) != std::string::npos) {
        in.fail("pool", "must be one name without spaces and '/'");
    }
    striping.start = in.integer("start", 0, 65534);
    in.reject_unknown_members();
    if (!striping.count && !striping.size && striping.pool.empty() && !striping.start) {
        throw PlanError("plan: target.striping says nothing: give it count, size, pool or start, or leave it out");
    }
    return striping;
}

void read_target(const Reader& in, TargetSettings& target) {
    target.path = in.text("path");
    if (target.path.empty() || target.path.find('\0') != std::string::npos) {
        in.fail("path", "must name a directory");
    }
    target.directory = in.text("directory", target.directory);
    if (target.directory == "." || target.directory == ".." || target.directory.find('/') != std::string::npos ||
        target.directory.find('\0') != std::string::npos) {
        in.fail("directory", "must be one name without '/': it is made below target.path and removed afterwards");
    }
    target.keep = in.boolean("keep", target.keep);
    target.use_existing = in.boolean("use_existing", target.use_existing);
    target.keep_manifest = in.boolean("keep_manifest", target.keep_manifest);
    target.min_free = in.bytes("min_free", target.min_free);
    target.full_stripe = in.bytes("full_stripe");
    if (in.has("striping")) {
        target.striping = read_striping(in.object("striping"));
    }
    in.reject_unknown_members();
}

}  // namespace

Plan parse_plan(std::string_view json_text, const Capabilities& capabilities) {
    const json document = parse_document(json_text);
    if (!document.is_object()) {
        throw PlanError("the plan must be a JSON object with the members schema, id, target and phases");
    }
    const Reader in(document, "");
    if (in.text("schema") != "sonde-plan/2") {
        in.fail("schema", "is \"" + in.text("schema") + "\", but this engine reads \"sonde-plan/2\"");
    }
    Plan plan;
    plan.canonical = document.dump(-1, ' ', false, json::error_handler_t::replace);
    plan.id = in.identifier("id");
    plan.title = in.text("title", plan.title);
    read_target(in.object("target"), plan.target);
    const Reader tasks = in.object_or_empty("tasks");
    plan.tasks.processes = static_cast<int>(tasks.integer("processes", plan.tasks.processes, 1, 65536));
    plan.tasks.threads = static_cast<int>(tasks.integer("threads", plan.tasks.threads, 1, 4096));
    plan.tasks.pin = tasks.boolean("pin", plan.tasks.pin);
    plan.tasks.used = static_cast<int>(tasks.integer("used", plan.tasks.used, 1, 1 << 28));
    tasks.reject_unknown_members();
    plan.has_data = document.contains("data") || !document.contains("meta");
    const json data = document.contains("data") ? document.at("data") : json::object();
    plan.data = read_data(in.object_or_empty("data"));
    if (in.has("meta")) {
        read_meta(in.object("meta"));  // errors name meta, also when no phase uses it
    }
    for (const Reader& phase : in.array("phases")) {
        plan.phases.push_back(read_phase(phase, data, document, capabilities));
    }
    const Reader observe = in.object_or_empty("observe");
    plan.observe.slice = observe.duration("slice", plan.observe.slice);
    plan.observe.max_slices = static_cast<int>(observe.integer("max_slices", plan.observe.max_slices, 16, 65536));
    plan.observe.progress = observe.duration("progress", plan.observe.progress);
    observe.reject_unknown_members();
    const Reader limits = in.object_or_empty("limits");
    plan.time_limit = limits.duration("time");
    plan.begin_limit = limits.duration("begin");
    limits.reject_unknown_members();
    for (const std::string& name : in.texts("calibrated")) {
        if (name != "data.access.volume" && name != "data.files.count") {
            in.fail("calibrated", "names \"" + name + "\", but may name data.access.volume and data.files.count only");
        }
    }
    in.reject_unknown_members({"source", "notes", "data", "meta"});
    check_plan(plan, capabilities);
    return plan;
}

}  // namespace sonde::plan
