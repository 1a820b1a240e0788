// SPDX-License-Identifier: Apache-2.0
#include "plan/resolved.hpp"

#include "plan/choices.hpp"

#include <array>

namespace sonde::plan {
namespace {

using nlohmann::ordered_json;
using namespace choices;

std::string duration_to_json(Nanoseconds ns) {
    return std::to_string(ns) + "ns";
}

template <class T>
void add_member(ordered_json& into, const char* key, const std::optional<T>& value) {
    if (value) {
        into[key] = *value;
    }
}

void add_duration(ordered_json& into, const char* key, const std::optional<Nanoseconds>& value) {
    if (value) {
        into[key] = duration_to_json(*value);
    }
}

void add_text(ordered_json& into, const char* key, const std::string& value) {
    if (!value.empty()) {
        into[key] = value;
    }
}

ordered_json amount_to_json(const Amount& amount) {
    if (amount.of == Amount::Of::bytes && amount.per == Amount::Per::task) {
        return amount.bytes;
    }
    ordered_json out{{"of", word(amount_of, amount.of)}};
    if (amount.of == Amount::Of::bytes) {
        out["bytes"] = amount.bytes;
    } else {
        out["x"] = amount.factor;
    }
    out["per"] = word(amount_per, amount.per);
    return out;
}

ordered_json striping_to_json(const Striping& striping) {
    ordered_json out = ordered_json::object();
    add_member(out, "count", striping.count);
    add_member(out, "size", striping.size);
    add_text(out, "pool", striping.pool);
    add_member(out, "start", striping.start);
    return out;
}

ordered_json target_to_json(const TargetSettings& target) {
    ordered_json out{{"path", target.path}};
    add_text(out, "directory", target.directory);
    out["keep"] = target.keep;
    out["use_existing"] = target.use_existing;
    out["keep_manifest"] = target.keep_manifest;
    out["min_free"] = target.min_free;
    add_member(out, "full_stripe", target.full_stripe);
    if (target.striping) {
        out["striping"] = striping_to_json(*target.striping);
    }
    return out;
}

ordered_json tasks_to_json(const Tasks& tasks) {
    ordered_json out{{"processes", tasks.processes}, {"threads", tasks.threads}, {"pin", tasks.pin}};
    if (tasks.used > 0) {
        out["used"] = tasks.used;
    }
    return out;
}

ordered_json files_to_json(const Files& files) {
    ordered_json out{{"mapping", word(mappings, files.mapping)}};
    if (files.mapping == Mapping::per_group) {
        out["group_size"] = files.group_size;
    }
    out["count"] = files.count;
    out["directories"] = word(directory_kinds, files.directories);
    out["name"] = files.name;
    if (files.in_place()) {
        out["paths"] = files.paths;
    }
    if (!files.across.empty()) {
        out["across"] = files.across;
    }
    out["suffix"] = files.suffix;
    return out;
}

ordered_json access_to_json(const Access& access) {
    ordered_json out{{"transfer", access.transfer}, {"block", access.block}};
    add_member(out, "segments", access.segments);
    if (access.volume) {
        out["volume"] = amount_to_json(*access.volume);
    }
    out["order"] = word(orders, access.order);
    out["scope"] = word(scopes, access.scope);
    out["stride"] = access.stride;
    out["gap"] = access.gap;
    out["offset"] = access.offset;
    out["seed"] = access.seed;
    add_member(out, "within", access.within);
    add_member(out, "read_ratio", access.read_ratio);
    return out;
}

ordered_json io_to_json(const Io& io) {
    ordered_json out{{"direct", io.direct},
                     {"sync", word(syncs, io.sync)},
                     {"fsync", word(fsyncs, io.fsync)},
                     {"preallocate", word(preallocations, io.preallocate)},
                     {"queue_depth", io.queue_depth},
                     {"collective", io.collective},
                     {"view", io.view},
                     {"registered", io.registered},
                     {"continue_short", io.continue_short},
                     {"pause", duration_to_json(io.pause)}};
    if (!io.hints.empty()) {
        out["hints"] = io.hints;
    }
    return out;
}

ordered_json payload_to_json(const Payload& payload) {
    ordered_json out{{"kind", word(payload_kinds, payload.kind)},
                     {"seed", payload.seed},
                     {"compressible", payload.compressible},
                     {"duplicates", payload.duplicates}};
    if (payload.period > 0) {
        out["period"] = payload.period;
    }
    return out;
}

ordered_json paced_to_json(const Paced& paced) {
    ordered_json out{{"virtual_clock", paced.virtual_clock}, {"latency", duration_to_json(paced.latency)}};
    for (const Paced::RateStep& step : paced.schedule) {
        out["schedule"].push_back({{"at", duration_to_json(step.at)}, {"rate", step.rate}});
    }
    out["ramp"] = paced.ramp;
    out["delays"] = {{"create", duration_to_json(paced.delays.create)},
                     {"transfer", duration_to_json(paced.delays.transfer)},
                     {"close", duration_to_json(paced.delays.close)},
                     {"sync", duration_to_json(paced.delays.sync)},
                     {"first_task_only", paced.delays.first_task_only}};
    for (const auto& [task, factor] : paced.slow_tasks) {
        out["slow_tasks"][std::to_string(task)] = factor;
    }
    add_member(out, "fail_after", paced.fail_after);
    out["fail_errno"] = paced.fail_errno;
    return out;
}

ordered_json tree_to_json(const Tree& tree) {
    return {{"top", tree.top},
            {"copies", tree.copies},
            {"depth", tree.depth},
            {"branching", tree.branching},
            {"leaf_only", tree.leaf_only},
            {"items_per_dir", tree.items_per_dir},
            {"scope", word(tree_scopes, tree.scope)},
            {"home_shift", tree.home_shift}};
}

ordered_json lookup_to_json(const Meta& meta) {
    ordered_json names = ordered_json::array();
    for (const auto& field : fields) {
        if (field.value != STATX_BASIC_STATS && field.value != (STATX_BASIC_STATS | STATX_BTIME) &&
            (meta.fields & field.value) != 0) {
            names.push_back(field.name);
        }
    }
    return {{"stat", word(stat_calls, meta.lookup)},
            {"fields", names},
            {"freshness", word(freshness, meta.freshness)},
            {"paths", word(path_kinds, meta.paths)},
            {"walk_from", word(walk_roots, meta.from_directory)},
            {"each_entry", meta.look_at_all}};
}

ordered_json find_to_json(const EntryFilter& find) {
    ordered_json out{{"type", word(entry_types, find.type)}};
    add_text(out, "name", find.name);
    add_member(out, "size_min", find.size_min);
    add_member(out, "size_max", find.size_max);
    if (find.newer_than_ns) {
        out["newer_than"] = static_cast<double>(*find.newer_than_ns) / 1e9;
    }
    add_text(out, "newer_than_file", find.newer_than_file);
    return out;
}

ordered_json meta_to_json(const Phase& phase) {
    const Meta& meta = *phase.meta;
    ordered_json out{
        {"backend", phase.data.backend},
        {"tree", tree_to_json(meta.tree)},
        {"names", {{"branch", meta.names.branch}, {"file", meta.names.file}, {"directory", meta.names.directory}}},
        {"objects", word(objects, meta.objects)},
        {"file",
         {{"write", meta.write},
          {"read", meta.read},
          {"fsync", meta.fsync},
          {"create", word(makes, meta.make)},
          {"direct", meta.direct},
          {"shared_single", meta.shared_single},
          {"exclusive", meta.exclusive}}},
        {"select", {{"order", word(select_orders, meta.order)}, {"exponent", meta.exponent}, {"seed", meta.seed}}},
        {"lookup", lookup_to_json(meta)}};
    if (meta.find) {
        out["find"] = find_to_json(*meta.find);
    }
    out["sync"] = meta.sync;
    out["by_first"] = meta.by_first;
    out["missing"] = word(absences, meta.go_on);
    if (meta.window) {
        out["window"] = {{"first", meta.window->first}, {"count", meta.window->count}, {"across", meta.window->across}};
    }
    out["cycle"] = {{"working", meta.cycle.working},
                    {"spread", meta.cycle.spread},
                    {"keep", meta.cycle.keep},
                    {"wait", meta.cycle.wait}};
    out["payload"] = payload_to_json(phase.data.payload);
    out["verify"] = word(verifications, phase.data.verify);
    out["paced"] = paced_to_json(phase.data.paced);
    return out;
}

ordered_json treatment_to_json(const Treatment& treatment) {
    ordered_json out{{"kind", treatment.kind}, {"need", word(needs, treatment.required)}};
    if (treatment.time > 0) {
        out["time"] = duration_to_json(treatment.time);
    }
    if (treatment.fraction > 0) {
        out["fraction"] = treatment.fraction;
    }
    add_text(out, "command", treatment.command);
    out["max_residency"] = treatment.max_residency;
    return out;
}

ordered_json stop_to_json(const Stop& stop) {
    ordered_json out{{"wearout", stop.wearout}, {"first_done", stop.first_done}};
    add_duration(out, "time", stop.time);
    add_duration(out, "stonewall", stop.stonewall);
    add_duration(out, "min_time", stop.min_time);
    add_member(out, "operations", stop.operations);
    add_member(out, "items", stop.items);
    add_text(out, "within", stop.within);
    return out;
}

ordered_json shift_to_json(const Shift& shift) {
    ordered_json out{{"by", word(shifts, shift.by)}, {"n", shift.n}, {"seed", shift.seed}};
    if (!shift.owners.empty()) {
        out["owners"] = shift.owners;
    }
    return out;
}

/// Members of every phase.
ordered_json phase_head_to_json(const Phase& phase) {
    ordered_json out{{"id", phase.id}, {"op", text(phase.op)}};
    if (phase.op == Op::stat || phase.op == Op::remove || phase.op == Op::read || phase.op == Op::stat_items ||
        phase.op == Op::remove_items || phase.op == Op::read_items) {
        out["on"] = word(subjects, phase.meta.has_value());
    }
    add_text(out, "data_of", phase.data_of);
    if (!phase.files.empty()) {
        out["files"] = phase.files;
    }
    out["open"] = word(opens, phase.open);
    out["process"] = word(process_kinds, phase.separate_process);
    out["measure"] = phase.measured;
    out["barrier"] = word(barriers, phase.barrier);
    out["shift"] = shift_to_json(phase.shift);
    out["stop"] = stop_to_json(phase.stop);
    ordered_json valid = ordered_json::object();
    add_duration(valid, "min_time", phase.valid.min_time);
    add_member(valid, "max_residency", phase.valid.max_residency);
    out["valid"] = valid;
    out["before"] = ordered_json::array();
    for (const Treatment& treatment : phase.before) {
        out["before"].push_back(treatment_to_json(treatment));
    }
    for (const DuplexStream& stream : phase.streams) {
        out["streams"].push_back({{"id", stream.id},
                                  {"op", word(stream_ops, stream.write)},
                                  {"tasks", word(stream_tasks, stream.tasks)},
                                  {"file", stream.file}});
    }
    add_text(out, "operations_file", phase.operations_file);
    out["unless_mismatch"] = phase.unless_mismatch;
    return out;
}

ordered_json phase_to_json(const Phase& phase) {
    ordered_json out = phase_head_to_json(phase);
    if (phase.meta) {
        out["meta"] = meta_to_json(phase);
        return out;
    }
    out["backend"] = phase.data.backend;
    out["access"] = access_to_json(phase.data.access);
    out["io"] = io_to_json(phase.data.io);
    out["verify"] = word(verifications, phase.data.verify);
    out["suffix"] = phase.data.files.suffix;
    return out;
}

}  // namespace

ordered_json resolve_plan(const Plan& plan) {
    ordered_json out{{"schema", "sonde-plan/2"}, {"id", plan.id}};
    add_text(out, "title", plan.title);
    out["target"] = target_to_json(plan.target);
    out["tasks"] = tasks_to_json(plan.tasks);
    if (plan.has_data) {
        out["data"] = {{"backend", plan.data.backend},
                       {"files", files_to_json(plan.data.files)},
                       {"access", access_to_json(plan.data.access)},
                       {"io", io_to_json(plan.data.io)},
                       {"payload", payload_to_json(plan.data.payload)},
                       {"verify", word(verifications, plan.data.verify)},
                       {"paced", paced_to_json(plan.data.paced)}};
    } else {
        out["meta"] = ordered_json::object();
    }
    for (const Phase& phase : plan.phases) {
        out["phases"].push_back(phase_to_json(phase));
    }
    out["observe"] = {{"slice", duration_to_json(plan.observe.slice)},
                      {"max_slices", plan.observe.max_slices},
                      {"progress", duration_to_json(plan.observe.progress)}};
    ordered_json limits = ordered_json::object();
    add_duration(limits, "time", plan.time_limit);
    add_duration(limits, "begin", plan.begin_limit);
    out["limits"] = limits;
    return out;
}

}  // namespace sonde::plan
