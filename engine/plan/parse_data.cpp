// SPDX-License-Identifier: Apache-2.0
#include "plan/parse_data.hpp"

#include "plan/choices.hpp"
#include "plan/overlay.hpp"

#include <algorithm>
#include <bit>
#include <charconv>

namespace sonde::plan {
namespace {

using nlohmann::json;
using namespace choices;

Files read_files(const Reader& in) {
    Files files;
    files.mapping = in.choice("mapping", mappings, files.mapping);
    files.group_size = static_cast<int>(in.integer("group_size", files.group_size, 1, 1 << 24));
    files.count = static_cast<int>(in.integer("count", files.count, 1, 100'000'000));
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
    for (const std::string& directory : in.texts("across")) {
        if (directory.empty() || directory[0] != '/' || directory.find('\0') != std::string::npos) {
            in.fail("across", "holds \"" + directory + "\", which is not the path of a directory from the root");
        }
        files.across.push_back(directory);
    }
    files.suffix = in.text("suffix", files.suffix);
    if (files.suffix.find('/') != std::string::npos || files.suffix.find('\0') != std::string::npos) {
        in.fail("suffix", "must be the end of a file name, without '/'");
    }
    in.reject_unknown_members();
    return files;
}

Access read_access(const Reader& in) {
    Access access;
    access.transfer = in.bytes("transfer", access.transfer);
    access.block = in.bytes("block", access.transfer);
    access.segments = in.integer("segments", 1, INT64_MAX);
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
    access.stride = in.bytes("stride", access.stride);
    access.gap = in.bytes("gap", access.gap);
    access.offset = in.bytes("offset", access.offset);
    access.seed = in.seed(access.seed);
    access.within = in.bytes("within");
    access.read_ratio = in.number("read_ratio", 0.0, 1.0);
    in.reject_unknown_members();
    return access;
}

Io read_io(const Reader& in) {
    Io io;
    io.direct = in.boolean("direct", io.direct);
    io.sync = in.choice("sync", syncs, io.sync);
    io.fsync = in.choice("fsync", fsyncs, io.fsync);
    io.preallocate = in.choice("preallocate", preallocations, io.preallocate);
    io.queue_depth = static_cast<int>(in.integer("queue_depth", io.queue_depth, 1, 4096));
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
    in.reject_unknown_members();
    return io;
}

Payload read_payload(const Reader& in) {
    Payload payload;
    payload.kind = in.choice("kind", payload_kinds, payload.kind);
    payload.seed = in.seed(payload.seed);
    payload.compressible = in.number("compressible", payload.compressible, 0.0, 1.0);
    payload.duplicates = in.number("duplicates", payload.duplicates, 0.0, 1.0);
    payload.period = in.bytes("period", payload.period);
    if (in.has("period") &&
        (!std::has_single_bit(payload.period) || payload.period < 4096 || payload.period > (64U << 20U))) {
        in.fail("period", "must be a power of two from 4 KiB to 64 MiB");
    }
    in.reject_unknown_members();
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
            step.reject_unknown_members();
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
    paced.virtual_clock = in.boolean("virtual_clock", paced.virtual_clock);
    paced.latency = in.duration("latency", paced.latency);
    read_schedule(in, paced);
    paced.ramp = in.boolean("ramp", paced.ramp);
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
    const Reader delays = in.object_or_empty("delays");
    paced.delays.create = delays.duration("create", paced.delays.create);
    paced.delays.transfer = delays.duration("transfer", paced.delays.transfer);
    paced.delays.close = delays.duration("close", paced.delays.close);
    paced.delays.sync = delays.duration("sync", paced.delays.sync);
    paced.delays.first_task_only = delays.boolean("first_task_only", paced.delays.first_task_only);
    delays.reject_unknown_members();
    paced.fail_after = in.integer("fail_after", 0, INT64_MAX);
    paced.fail_errno = static_cast<int>(in.integer("fail_errno", paced.fail_errno, 1, 133));
    in.reject_unknown_members();
    return paced;
}

}  // namespace

Amount read_amount(const Reader& parent, const char* key) {
    Amount amount;
    if (!parent.value(key).is_object()) {
        amount.bytes = parent.bytes(key, amount.bytes);
        return amount;
    }
    const Reader in = parent.object(key);
    amount.of = in.choice("of", amount_of, amount.of);
    amount.bytes = in.bytes("bytes", amount.bytes);
    amount.factor = in.number("x", amount.factor, 0.0, 1e6);
    amount.per = in.choice("per", amount_per, amount.per);
    if (amount.of == Amount::Of::bytes && !in.has("bytes")) {
        in.fail("bytes", "is missing: say how many, or use of = \"node_memory\"");
    }
    in.reject_unknown_members();
    return amount;
}

void check_phase_data(const Reader& phase) {
    read_access(phase.object_or_empty("access"));
    read_io(phase.object_or_empty("io"));
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
    in.reject_unknown_members();
    return data;
}

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

}  // namespace sonde::plan
