// SPDX-License-Identifier: Apache-2.0
#include "plan/parse.hpp"

#include "plan/parse_meta.hpp"
#include "plan/reader.hpp"
#include "plan/units.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <set>

namespace sonde::plan {
namespace {

using nlohmann::json;

constexpr Choice<Mapping> mappings[] = {{"shared", Mapping::shared},
                                        {"per_task", Mapping::per_task},
                                        {"per_node", Mapping::per_node},
                                        {"per_group", Mapping::per_group},
                                        {"many", Mapping::many}};
constexpr Choice<Directories> directory_kinds[] = {
    {"one", Directories::one}, {"per_task", Directories::per_task}, {"per_node", Directories::per_node}};
constexpr Choice<Order> orders[] = {{"sequential", Order::sequential},
                                    {"reverse", Order::reverse},
                                    {"stride", Order::stride},
                                    {"random_permute", Order::random_permute},
                                    {"random_replace", Order::random_replace}};
constexpr Choice<Scope> scopes[] = {{"block", Scope::block}, {"task", Scope::task}, {"file", Scope::file}};
constexpr Choice<Sync> syncs[] = {{"none", Sync::none}, {"dsync", Sync::dsync}, {"sync", Sync::sync}};
constexpr Choice<Fsync> fsyncs[] = {{"none", Fsync::none},
                                    {"per_op", Fsync::per_op},
                                    {"end", Fsync::end},
                                    {"end_timed_separately", Fsync::end_timed_separately}};
constexpr Choice<Preallocate> preallocations[] = {{"none", Preallocate::none},
                                                  {"truncate", Preallocate::truncate},
                                                  {"fallocate", Preallocate::fallocate},
                                                  {"unwritten", Preallocate::unwritten}};
constexpr Choice<PayloadKind> payload_kinds[] = {{"stamped", PayloadKind::stamped},
                                                 {"random", PayloadKind::random},
                                                 {"zero", PayloadKind::zero},
                                                 {"ior_timestamp", PayloadKind::ior_timestamp},
                                                 {"ior_offset", PayloadKind::ior_offset},
                                                 {"ior_incompressible", PayloadKind::ior_incompressible},
                                                 {"ior_random", PayloadKind::ior_random}};
constexpr Choice<Verify> verifications[] = {
    {"none", Verify::none}, {"on_read", Verify::on_read}, {"readback", Verify::readback}, {"both", Verify::both}};
constexpr Choice<Op> ops[] = {{"write", Op::write},   {"rewrite", Op::rewrite},     {"read", Op::read},
                              {"reread", Op::reread}, {"read_only", Op::read_only}, {"mixed", Op::mixed},
                              {"duplex", Op::duplex}, {"stat", Op::stat},           {"remove", Op::remove}};
constexpr Choice<Open> opens[] = {
    {"truncate", Open::truncate}, {"overwrite", Open::overwrite}, {"exclusive", Open::exclusive}};
constexpr Choice<ShiftBy> shifts[] = {{"none", ShiftBy::none},       {"tasks", ShiftBy::tasks},
                                      {"nodes", ShiftBy::nodes},     {"random", ShiftBy::random},
                                      {"permute", ShiftBy::permute}, {"list", ShiftBy::list}};
constexpr Choice<Barrier> barriers[] = {{"none", Barrier::none}, {"phase", Barrier::phase}, {"intra", Barrier::intra}};
constexpr Choice<Treatment::Kind> treatments[] = {{"sync", Treatment::Kind::sync},
                                                  {"drop_page_cache", Treatment::Kind::drop_page_cache},
                                                  {"fadvise", Treatment::Kind::fadvise},
                                                  {"remount", Treatment::Kind::remount},
                                                  {"memory_hog", Treatment::Kind::memory_hog},
                                                  {"sleep", Treatment::Kind::sleep},
                                                  {"command", Treatment::Kind::command}};
constexpr Choice<Lane::Tasks> lane_tasks[] = {
    {"same", Lane::Tasks::same}, {"first_half", Lane::Tasks::first_half}, {"second_half", Lane::Tasks::second_half}};
constexpr Choice<bool> lane_ops[] = {{"write", true}, {"read", false}};
constexpr Choice<bool> needs[] = {{"required", true}, {"best_effort", false}};
constexpr Choice<bool> processes[] = {{"separate", true}, {"same", false}};
constexpr Choice<Amount::Of> amount_of[] = {{"bytes", Amount::Of::bytes}, {"node_memory", Amount::Of::node_memory}};
constexpr Choice<Amount::Per> amount_per[] = {
    {"task", Amount::Per::task}, {"node", Amount::Per::node}, {"total", Amount::Per::total}};

Amount read_amount(const Reader& parent, const char* key) {
    Amount amount;
    if (!parent.value(key).is_object()) {
        amount.bytes = parent.bytes(key, 0);
        return amount;
    }
    const Reader in = parent.object(key);
    amount.of = in.choice("of", amount_of, Amount::Of::bytes);
    amount.bytes = in.bytes("bytes", 0);
    amount.factor = in.number("x", 1.0, 0.0, 1e6);
    amount.per = in.choice("per", amount_per, Amount::Per::task);
    if (amount.of == Amount::Of::bytes && !in.has("bytes")) {
        in.fail("bytes", "is missing: say how many, or use of = \"node_memory\"");
    }
    in.done();
    return amount;
}

Files read_files(const Reader& in) {
    Files files;
    files.mapping = in.choice("mapping", mappings, files.mapping);
    files.group_size = static_cast<int>(in.integer("group_size", 0, 1, 1 << 24));
    files.count = static_cast<int>(in.integer("count", 1, 1, 100'000'000));
    files.directories = in.choice("directories", directory_kinds, files.directories);
    files.name = in.text("name", files.name);
    if (files.name.empty() || files.name.find('/') != std::string::npos || files.name[0] == '.' ||
        files.name.find('\0') != std::string::npos || files.name.size() > 128) {
        in.fail("name", "must be a plain file name of 1 to 128 bytes without '/' and without a leading dot");
    }
    for (const std::string& path : in.texts("paths")) {
        if (path.empty() || path.back() == '/' || path.find('\0') != std::string::npos) {
            in.fail("paths", "holds \"" + path + "\", which does not name a file");
        }
        files.paths.push_back(path);
    }
    files.suffix = in.text("suffix", "");
    if (files.suffix.find('/') != std::string::npos || files.suffix.find('\0') != std::string::npos) {
        in.fail("suffix", "must be the end of a file name, without '/'");
    }
    in.done();
    return files;
}

Access read_access(const Reader& in) {
    Access access;
    access.transfer = in.bytes("transfer", access.transfer);
    access.block = in.bytes("block", access.transfer);
    if (in.has("segments")) {
        access.segments = static_cast<std::uint64_t>(in.integer("segments", 1, 1, INT64_MAX));
    }
    if (in.has("volume")) {
        access.volume = read_amount(in, "volume");
    }
    if (access.segments && access.volume) {
        in.fail("segments", "and volume exclude each other: keep one");
    }
    if (!access.segments && !access.volume) {
        access.segments = 1;
    }
    access.order = in.choice("order", orders, access.order);
    access.scope = in.choice("scope", scopes, access.scope);
    access.stride = in.bytes("stride", 0);
    access.gap = in.bytes("gap", 0);
    access.offset = in.bytes("offset", 0);
    access.seed = static_cast<std::uint64_t>(in.integer("seed", 1, 0, INT64_MAX));
    if (in.has("within")) {
        access.within = in.bytes("within", 0);
        if (access.order != Order::random_replace) {
            in.fail("within", "is only used with order = \"random_replace\"");
        }
        if (access.transfer == 0 || *access.within < access.transfer || *access.within % access.transfer != 0) {
            in.fail("within", "is " + std::to_string(*access.within) + " B, but must be a multiple of transfer (" +
                                  std::to_string(access.transfer) + " B)");
        }
    }
    if (in.has("read_ratio")) {
        access.read_ratio = in.number("read_ratio", 0.5, 0.0, 1.0);
    }
    in.done();
    return access;
}

Io read_io(const Reader& in) {
    Io io;
    io.direct = in.boolean("direct", io.direct);
    io.sync = in.choice("sync", syncs, io.sync);
    io.fsync = in.choice("fsync", fsyncs, io.fsync);
    io.preallocate = in.choice("preallocate", preallocations, io.preallocate);
    io.queue_depth = static_cast<int>(in.integer("queue_depth", 1, 1, 4096));
    io.collective = in.boolean("collective", io.collective);
    io.view = in.boolean("view", io.view);
    io.registered = in.boolean("registered", io.registered);
    io.continue_short = in.boolean("continue_short", io.continue_short);
    io.pause = in.duration("pause", io.pause);
    if (in.has("hints")) {
        for (const auto& [key, value] : in.object("hints").members()) {
            if (!value.is_string()) {
                in.fail("hints." + key, "must be text");
            }
            io.hints[key] = value.get<std::string>();
        }
    }
    in.done();
    return io;
}

Payload read_payload(const Reader& in) {
    Payload payload;
    payload.kind = in.choice("kind", payload_kinds, payload.kind);
    payload.seed = static_cast<std::uint64_t>(in.integer("seed", 1, 0, INT64_MAX));
    payload.compressible = in.number("compressible", 0.0, 0.0, 1.0);
    payload.duplicates = in.number("duplicates", 0.0, 0.0, 1.0);
    payload.period = in.bytes("period", 0);
    if (in.has("period") &&
        (!std::has_single_bit(payload.period) || payload.period < 4096 || payload.period > (64U << 20U))) {
        in.fail("period", "must be a power of two from 4 KiB to 64 MiB");
    }
    in.done();
    return payload;
}

void read_schedule(const Reader& in, Paced& paced) {
    if (in.has("rate")) {
        paced.schedule.push_back({0, in.rate("rate")});
    }
    if (in.has("schedule")) {
        if (!paced.schedule.empty()) {
            in.fail("schedule", "and rate exclude each other: keep one");
        }
        for (const Reader& step : in.array("schedule")) {
            paced.schedule.push_back({step.duration("at", 0), step.rate("rate")});
            step.done();
        }
    }
    for (std::size_t i = 0; i < paced.schedule.size(); ++i) {
        if (i == 0 ? paced.schedule[0].at != 0 : paced.schedule[i].at <= paced.schedule[i - 1].at) {
            in.fail("schedule", "must begin at 0 and have ascending times");
        }
    }
}

Paced read_paced(const Reader& in) {
    Paced paced;
    paced.virtual_clock = in.boolean("virtual_clock", true);
    paced.latency = in.duration("latency", 0);
    read_schedule(in, paced);
    paced.ramp = in.boolean("ramp", false);
    if (in.has("slow_tasks")) {
        for (const auto& [key, value] : in.object("slow_tasks").members()) {
            int task = -1;
            const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), task);
            const double factor = value.is_number() ? value.get<double>() : 0;
            if (error != std::errc() || end != key.data() + key.size() || task < 0 || !(factor >= 1e-6) ||
                !(factor <= 1e6)) {
                in.fail("slow_tasks." + key, "must be a task number with a factor from 1e-6 to 1e6");
            }
            paced.slow_tasks[task] = factor;
        }
    }
    if (in.has("fail_after")) {
        paced.fail_after = static_cast<std::uint64_t>(in.integer("fail_after", 0, 0, INT64_MAX));
    }
    paced.fail_errno = static_cast<int>(in.integer("fail_errno", 5, 1, 133));
    in.done();
    return paced;
}

Data read_data(const Reader& in) {
    Data data;
    data.backend = in.text("backend", data.backend);
    data.files = read_files(in.object_or_empty("files"));
    data.access = read_access(in.object_or_empty("access"));
    data.io = read_io(in.object_or_empty("io"));
    data.payload = read_payload(in.object_or_empty("payload"));
    data.verify = in.choice("verify", verifications, data.verify);
    data.paced = read_paced(in.object_or_empty("paced"));
    in.done();
    return data;
}

/// The plan's data with the phase's own members laid over it. A phase that sets `volume` or `segments` drops the plan's
/// other one, and when it also sets `transfer` without `block` it gets block = transfer: what the writer meant.
json overlay(const json& data, const Reader& phase) {
    json merged = data.is_object() ? data : json::object();
    for (const char* key : {"backend", "verify"}) {
        if (phase.has(key)) {
            merged[key] = phase.value(key);
        }
    }
    if (phase.has("suffix")) {
        merged["files"]["suffix"] = phase.value("suffix");
    }
    for (const char* key : {"access", "io"}) {
        if (!phase.has(key) || !phase.value(key).is_object()) {
            continue;
        }
        const json& own = phase.value(key);
        json& base = merged[key];
        if (std::string_view(key) == "access" && base.is_object()) {
            if (own.contains("segments") || own.contains("volume")) {
                base.erase("segments");
                base.erase("volume");
                if (own.contains("transfer") && !own.contains("block")) {
                    base.erase("block");
                }
            }
        }
        base.update(own);
    }
    return merged;
}

Treatment read_treatment(const Reader& in) {
    Treatment treatment;
    treatment.kind = in.choice("kind", treatments);
    treatment.required = in.choice("need", needs, false);
    treatment.time = in.duration("time", 0);
    treatment.fraction = in.number("fraction", 0.0, 0.0, 0.95);
    treatment.command = in.text("command", "");
    treatment.max_resident = in.number("max_resident", treatment.max_resident, 0.0, 1.0);
    in.done();
    return treatment;
}

Stop read_stop(const Reader& in) {
    Stop stop;
    const auto optional = [&in](const char* key) -> std::optional<Nanoseconds> {
        if (!in.has(key)) {
            return std::nullopt;
        }
        const Nanoseconds value = in.duration(key, 0);
        if (value <= 0) {
            in.fail(key, "must be more than zero");
        }
        return value;
    };
    stop.time = optional("time");
    stop.stonewall = optional("stonewall");
    stop.min_time = optional("min_time");
    stop.wearout = in.boolean("wearout", false);
    stop.first_done = in.boolean("first_done", false);
    if (in.has("operations")) {
        stop.operations = static_cast<std::uint64_t>(in.integer("operations", 1, 1, INT64_MAX));
    }
    if (in.has("items")) {
        stop.items = static_cast<std::uint64_t>(in.integer("items", 1, 1, INT64_MAX));
    }
    in.done();
    return stop;
}

Lane read_lane(const Reader& in) {
    Lane lane;
    lane.id = in.text("id");
    lane.write = in.choice("op", lane_ops);
    lane.tasks = in.choice("tasks", lane_tasks, lane.tasks);
    lane.file = static_cast<int>(in.integer("file", 0, 0, 1 << 30));
    in.done();
    return lane;
}

/// The phase's part of the tree workload: `data` becomes what little of the data part it needs.
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
    const json data = data_of_meta(merged, *phase.meta);
    phase.data = read_data(Reader(data, path));
}

/// "data" or "meta"; without a word the operation tells, or what the plan is about.
bool works_on_tree(const Reader& in, bool plan_has_data, bool plan_has_meta) {
    constexpr Choice<bool> subjects[] = {{"meta", true}, {"data", false}};
    const std::string op = in.has("op") && in.value("op").is_string() ? in.text("op") : std::string();
    const bool tree_only = is_tree_op_only(op);
    const bool tree = in.choice("on", subjects, tree_only || (is_tree_op(op) && plan_has_meta && !plan_has_data));
    if (tree_only && !tree) {
        in.fail("on", "is \"data\", but op = \"" + op + "\" works on a tree: leave it out");
    }
    return tree;
}

Phase read_phase(const Reader& in, const json& data, const std::string& data_path, const json& document) {
    Phase phase;
    phase.id = in.identifier("id");
    const bool tree = works_on_tree(in, document.contains("data"), document.contains("meta"));
    phase.op = tree ? tree_op(in) : in.choice("op", ops);
    phase.data_of = in.text("data_of", "");
    if (in.has("files")) {
        for (const Reader& file : in.array("files")) {
            phase.files.push_back(static_cast<int>(file.self_integer(0, 1 << 30)));
        }
    }
    phase.open = in.choice("open", opens, phase.op == Op::write ? Open::truncate : Open::overwrite);
    phase.separate_process = in.choice("process", processes, false);
    phase.measured = in.boolean("measure", true);
    phase.operations_file = in.text("operations_file", "");
    phase.unless_mismatch = in.boolean("unless_mismatch", false);
    phase.barrier = in.choice("barrier", barriers, phase.barrier);
    const Reader shift = in.object_or_empty("shift");
    phase.shift.by = shift.choice("by", shifts, ShiftBy::none);
    phase.shift.n = static_cast<int>(shift.integer("n", 1, -(1 << 30), 1 << 30));
    phase.shift.seed = static_cast<std::uint64_t>(shift.integer("seed", 1, 0, INT64_MAX));
    for (const Reader& owner : shift.list("owners")) {
        phase.shift.owners.push_back(static_cast<int>(owner.self_integer(0, 1 << 30)));
    }
    shift.done();
    phase.stop = read_stop(in.object_or_empty("stop"));
    const Reader valid = in.object_or_empty("valid");
    if (valid.has("min_time")) {
        phase.valid.min_time = valid.duration("min_time", 0);
    }
    if (valid.has("max_resident")) {
        phase.valid.max_resident = valid.number("max_resident", 1.0, 0.0, 1.0);
    }
    valid.done();
    for (const Reader& treatment : in.list("before")) {
        phase.before.push_back(read_treatment(treatment));
    }
    if (in.has("lanes")) {
        for (const Reader& lane : in.array("lanes")) {
            phase.lanes.push_back(read_lane(lane));
        }
    }
    if (tree) {
        read_tree_phase(in, document.contains("meta") ? document.at("meta") : json::object(), phase);
        in.done();
        return phase;
    }
    if (in.has("meta")) {
        in.fail("meta", "is for operations on a tree, but op = \"" + std::string(text(phase.op)) +
                            "\" works on data: say on = \"meta\"");
    }
    const bool own = in.has("backend") || in.has("access") || in.has("io") || in.has("verify") || in.has("suffix");
    if (own) {
        // Checked on their own first, so that a wrong member is named where it stands.
        read_access(in.object_or_empty("access"));
        read_io(in.object_or_empty("io"));
    }
    const json merged = overlay(data, in);
    phase.data = read_data(Reader(merged, own ? in.path() + " over " + data_path : data_path));
    phase.data_at = own ? in.path() : data_path;
    in.done({"backend", "access", "io", "verify", "suffix"});
    return phase;
}

void read_target(const Reader& in, Target& target) {
    target.path = in.text("path");
    if (target.path.empty() || target.path.find('\0') != std::string::npos) {
        in.fail("path", "must name a directory");
    }
    target.directory = in.text("directory", "");
    if (target.directory == "." || target.directory == ".." || target.directory.find('/') != std::string::npos ||
        target.directory.find('\0') != std::string::npos) {
        in.fail("directory", "must be one name without '/': it is made below target.path and removed afterwards");
    }
    target.keep = in.boolean("keep", false);
    target.use_existing = in.boolean("use_existing", false);
    target.keep_manifest = in.boolean("keep_manifest", true);
    target.min_free = in.bytes("min_free", target.min_free);
    if (in.has("full_stripe")) {
        target.full_stripe = in.bytes("full_stripe", 0);
    }
    in.done();
}

/// Refuses a member that is there twice: JSON leaves open which one counts, and the writer surely meant one.
class DuplicateGuard {
 public:
    bool operator()(int /*depth*/, json::parse_event_t event, json& parsed) {
        if (event == json::parse_event_t::object_start) {
            open_.emplace_back();
        } else if (event == json::parse_event_t::object_end) {
            open_.pop_back();
        } else if (event == json::parse_event_t::key && !open_.back().insert(parsed.get<std::string>()).second) {
            const std::string key = parsed.dump(-1, ' ', true, json::error_handler_t::replace);
            throw PlanError("plan: " + key.substr(0, 60) + " is there twice in one object: keep one");
        }
        return true;
    }

 private:
    std::vector<std::set<std::string>> open_;
};

std::string not_json(std::string_view text, std::size_t byte) {
    constexpr std::string_view blank = " \t\r\n";
    const std::size_t first = text.find_first_not_of(blank);
    if (first == std::string_view::npos) {
        return "the plan is empty: it must be a JSON object with the members schema, id, target and phases";
    }
    const std::string_view before = text.substr(0, std::min(byte > 0 ? byte - 1 : 0, text.size()));
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    const std::size_t begin = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
    const std::string place = "line " + std::to_string(line) + ", column " + std::to_string(before.size() - begin + 1);
    const bool toml =
        text[first] != '{' && text.substr(first, text.find('\n', first) - first).find('=') != std::string_view::npos;
    std::string what = before.size() >= text.size() ? "the text ends too early" : "something else was expected";
    if (toml) {
        what += "; it looks like TOML, which `sonde run` reads";
    }
    return "the plan is not JSON: " + place + ": " + what;
}

json parse_json(std::string_view text) {
    try {
        // Depth is limited before the recursive parser sees the text: a plan needs seven levels.
        int depth = 0;
        bool quoted = false;
        for (std::size_t i = 0; i < text.size(); ++i) {
            if (quoted) {
                i += text[i] == '\\' ? 1 : 0;
                quoted = i >= text.size() || text[i] != '"';
                continue;
            }
            quoted = text[i] == '"';
            depth += (text[i] == '{' || text[i] == '[') ? 1 : (text[i] == '}' || text[i] == ']') ? -1 : 0;
            if (depth > 64) {
                throw PlanError("the plan is nested more than 64 levels deep: it is not a Sonde plan");
            }
        }
        return json::parse(text, DuplicateGuard());
    } catch (const json::parse_error& error) {
        throw PlanError(not_json(text, error.byte));
    } catch (const json::out_of_range&) {
        throw PlanError("the plan holds a number beyond what a computer can hold, such as 1e999");
    }
}

}  // namespace

Plan parse_plan(std::string_view json_text) {
    const json document = parse_json(json_text);
    if (!document.is_object()) {
        throw PlanError("the plan must be a JSON object with the members schema, id, target and phases");
    }
    const Reader in(document, "");
    if (in.text("schema") != "sonde-plan/1") {
        in.fail("schema", "is \"" + in.text("schema") + "\", but this engine reads \"sonde-plan/1\"");
    }
    Plan plan;
    plan.canonical = document.dump(-1, ' ', false, json::error_handler_t::replace);
    plan.id = in.identifier("id");
    plan.title = in.text("title", "");
    read_target(in.object("target"), plan.target);
    const Reader tasks = in.object_or_empty("tasks");
    plan.tasks.processes = static_cast<int>(tasks.integer("processes", 1, 1, 65536));
    plan.tasks.threads = static_cast<int>(tasks.integer("threads", 1, 1, 4096));
    plan.tasks.pin = tasks.boolean("pin", false);
    plan.tasks.used = static_cast<int>(tasks.integer("used", 0, 1, 1 << 28));
    tasks.done();
    plan.has_data = document.contains("data") || !document.contains("meta");
    const json data = document.contains("data") ? document.at("data") : json::object();
    plan.data = read_data(in.object_or_empty("data"));
    if (in.has("meta")) {
        read_meta(in.object("meta"));  // a mistake is named where it stands, also when no phase uses it
    }
    std::size_t index = 0;
    for (const Reader& phase : in.array("phases")) {
        plan.phases.push_back(read_phase(phase, data, "data", document));
        ++index;
    }
    const Reader observe = in.object_or_empty("observe");
    plan.observe.slice = observe.duration("slice", plan.observe.slice);
    plan.observe.max_slices = static_cast<int>(observe.integer("max_slices", plan.observe.max_slices, 16, 65536));
    plan.observe.progress = observe.duration("progress", plan.observe.progress);
    observe.done();
    const Reader limits = in.object_or_empty("limits");
    if (limits.has("time")) {
        plan.time_limit = limits.duration("time", 0);
    }
    if (limits.has("begin")) {
        plan.begin_limit = limits.duration("begin", 0);
    }
    limits.done();
    in.done({"source", "notes", "data", "meta"});
    check_plan(plan);
    return plan;
}

const char* text(Op op) {
    if (const char* name = tree_op_text(op)) {
        return name;
    }
    for (const auto& choice : ops) {
        if (choice.value == op) {
            return choice.name;
        }
    }
    return "?";
}

const char* text(Mapping mapping) {
    for (const auto& choice : mappings) {
        if (choice.value == mapping) {
            return choice.name;
        }
    }
    return "?";
}

const char* text(Order order) {
    for (const auto& choice : orders) {
        if (choice.value == order) {
            return choice.name;
        }
    }
    return "?";
}

bool writes(Op op) {
    return op == Op::write || op == Op::rewrite || op == Op::mixed || op == Op::duplex;
}
bool reads(Op op) {
    return !on_files(op) && !on_tree(op) && op != Op::write && op != Op::rewrite;
}

bool on_files(Op op) {
    return op == Op::stat || op == Op::remove;
}

}  // namespace sonde::plan
