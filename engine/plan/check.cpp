// SPDX-License-Identifier: Apache-2.0
#include "plan/check.hpp"

#include "plan/check_backend.hpp"
#include "plan/parse.hpp"
#include "plan/parse_meta.hpp"
#include "plan/units.hpp"
#include "plan/wide.hpp"

#include <algorithm>
#include <set>

namespace sonde::plan {

namespace {

constexpr Bytes largest_transfer = 1ULL << 30U;
constexpr Bytes largest_file = 1ULL << 62U;
constexpr Bytes sector = 512;

void check_access(const std::string& where, const Access& access) {
    if (access.transfer == 0 || access.transfer > largest_transfer) {
        refuse(where + ".access.transfer", "must be from 1 B to " + format_bytes(largest_transfer));
    }
    if (access.block == 0 || access.block % access.transfer != 0) {
        refuse(where + ".access.block",
               "is " + std::to_string(access.block) + " B, but must be a multiple of transfer (" +
                   std::to_string(access.transfer) + " B); a phase that sets no block has that of data");
    }
    if (access.within && access.order != Order::random_replace) {
        refuse(where + ".access.within", "is only used with order = \"random_replace\"");
    }
    if (access.within && (*access.within < access.transfer || *access.within % access.transfer != 0)) {
        refuse(where + ".access.within", "is " + std::to_string(*access.within) +
                                             " B, but must be a multiple of transfer (" +
                                             std::to_string(access.transfer) + " B)");
    }
    if (access.order == Order::stride && access.stride < access.transfer) {
        refuse(where + ".access.stride",
               "must be at least transfer (" + std::to_string(access.transfer) + " B): transfers would overlap");
    }
    if (access.order != Order::stride && access.stride != 0) {
        refuse(where + ".access.stride", "is only used with order = \"stride\"");
    }
    if (access.order == Order::stride && access.gap != 0) {
        refuse(where + ".access.gap", "does not go with order = \"stride\": the stride already says it");
    }
    if (access.volume && access.volume->of == Amount::Of::bytes && access.volume->bytes == 0) {
        refuse(where + ".access.volume", "must be more than zero");
    }
    if (access.volume && access.volume->of == Amount::Of::node_memory && access.volume->factor <= 0) {
        refuse(where + ".access.volume.x", "must be more than zero");
    }
    for (const Bytes size : {access.block, access.gap, access.offset, access.stride}) {
        if (size >= largest_file) {
            refuse(where + ".access", "reaches beyond the largest file (4 EiB)");
        }
    }
}

void check_reach(const std::string& where, const Data& data, const Tasks& tasks) {
    const std::uint64_t all = static_cast<std::uint64_t>(tasks.processes) * static_cast<std::uint64_t>(tasks.threads);
    if (data.access.segments && !fits_in_file(data, *data.access.segments, all)) {
        refuse(where + ".access", "reaches beyond the largest file (4 EiB): check segments, stride, gap and offset");
    }
}

/// A storage that takes no time, and tasks whose clocks have nothing to do with each other.
void check_paced(const std::string& where, const Phase& phase, const Traits& backend) {
    const Paced& paced = phase.data.paced;
    if (paced.latency > 3'600'000'000'000) {
        refuse("data.paced.latency", "must be at most 1 h");
    }
    if (!backend.virtual_time || !paced.virtual_clock) {
        return;
    }
    if ((phase.stop.time || phase.stop.min_time) && paced.schedule.empty() && paced.latency == 0) {
        refuse(where + ".stop", "needs time to pass, but data.paced has neither rate nor latency: give it one");
    }
    if (phase.stop.first_done) {
        refuse(where + ".stop.first_done", "stops tasks at the same moment, but with backend \"" + phase.data.backend +
                                               "\" each has a virtual clock of its own: set "
                                               "paced.virtual_clock = false");
    }
}

void check_io(const std::string& where, const Data& data, const Tasks& tasks, const Offer& offer) {
    const Io& io = data.io;
    if (!offer.traits_of(data.backend).mpi) {
        for (const auto& [used, name] : {std::pair{io.collective, "collective"}, std::pair{io.view, "view"},
                                         std::pair{!io.hints.empty(), "hints"}}) {
            if (used) {
                refuse(where + ".io." + name,
                       "needs backend = \"" + offer.backends_with(&Traits::mpi) + "\", not \"" + data.backend + "\"");
            }
        }
    }
    if (io.collective && tasks.threads > 1) {
        refuse(where + ".io.collective", "needs tasks.threads = 1: one task a process takes part in a collective call");
    }
    if (io.collective && data.files.mapping != Mapping::shared) {
        refuse(where + ".io.collective",
               "needs files.mapping = \"shared\": collective calls join all tasks on one file");
    }
    if (io.view && (data.access.order != Order::sequential || data.files.mapping != Mapping::shared)) {
        refuse(where + ".io.view", "needs order = \"sequential\" and files.mapping = \"shared\"");
    }
    if (io.direct) {
        const Access& a = data.access;
        for (const auto& [size, name] : {std::pair{a.transfer, "transfer"}, std::pair{a.offset, "offset"},
                                         std::pair{a.gap, "gap"}, std::pair{a.stride, "stride"}}) {
            if (size % sector != 0) {
                refuse(where + ".access." + name, "is " + std::to_string(size) +
                                                      " B, but direct I/O needs a multiple of 512 B (or more: the file "
                                                      "system is asked when the run starts)");
            }
        }
    }
}

void check_files(const std::string& where, const Files& files) {
    if (files.mapping == Mapping::per_group && files.group_size == 0) {
        refuse(where + ".files.group_size", "is missing: mapping = \"per_group\" needs it");
    }
    if (files.mapping != Mapping::per_group && files.group_size != 0) {
        refuse(where + ".files.group_size", "is only used with mapping = \"per_group\"");
    }
    if (files.mapping != Mapping::many && files.count != 1) {
        refuse(where + ".files.count", "is only used with mapping = \"many\"");
    }
    if (files.mapping == Mapping::shared && files.directories == Directories::per_task) {
        refuse(where + ".files.directories", "= \"per_task\" does not go with one shared file");
    }
}

void check_stop(const std::string& where, const Stop& stop) {
    if (stop.wearout && !stop.stonewall) {
        refuse(where + ".stop.wearout", "needs stop.stonewall: it says what happens after it");
    }
    if (stop.time && (stop.stonewall || stop.min_time || stop.first_done)) {
        refuse(where + ".stop.time", "stands alone: it already says when the phase ends");
    }
    if (stop.stonewall && stop.min_time && *stop.min_time > *stop.stonewall) {
        refuse(where + ".stop.min_time", "is longer than stop.stonewall");
    }
    if (stop.first_done && stop.wearout) {
        refuse(where + ".stop.first_done", "does not go with wearout: one stops all tasks, the other lets them finish");
    }
}

void check_treatments(const std::string& where, const std::vector<Treatment>& before, const Offer& offer) {
    for (std::size_t i = 0; i < before.size(); ++i) {
        const TreatmentRule* rule = offer.treatment(before[i].kind);
        const std::string missing = rule != nullptr && rule->missing != nullptr ? rule->missing(before[i]) : "";
        if (!missing.empty()) {
            throw PlanError("plan: " + where + ".before[" + std::to_string(i) + "]." + missing);
        }
    }
}

void check_lanes(const std::string& where, const Phase& phase) {
    if (phase.op != Op::duplex) {
        if (!phase.lanes.empty()) {
            refuse(where + ".lanes", "are only used with op = \"duplex\"");
        }
        return;
    }
    if (phase.lanes.size() != 2 || phase.lanes[0].write == phase.lanes[1].write) {
        refuse(where + ".lanes", "must be two: one that writes and one that reads");
    }
    const bool same = phase.lanes[0].tasks == Lane::Tasks::same;
    if (same != (phase.lanes[1].tasks == Lane::Tasks::same) ||
        (!same && phase.lanes[0].tasks == phase.lanes[1].tasks)) {
        refuse(where + ".lanes", "must both run on the same tasks, or one on first_half and one on second_half");
    }
    if (phase.data.files.mapping != Mapping::many || phase.data.files.count < 2 ||
        phase.lanes[0].file == phase.lanes[1].file) {
        refuse(where + ".lanes", "need files.mapping = \"many\" and different files: one is written, the other read");
    }
    for (const Lane& lane : phase.lanes) {
        if (lane.file >= phase.data.files.count) {
            refuse(where + ".lanes", "name file " + std::to_string(lane.file) + ", but files.count is " +
                                         std::to_string(phase.data.files.count));
        }
    }
}

void check_verify(const std::string& where, const Phase& phase, const Phase* source) {
    const bool on_read = phase.data.verify == Verify::on_read || phase.data.verify == Verify::both;
    const bool readback = phase.data.verify == Verify::readback || phase.data.verify == Verify::both;
    if (!on_read && !readback) {
        return;
    }
    if (phase.data.payload.kind == PayloadKind::zero) {
        refuse(phase.data_at + ".verify", "is useless with payload.kind = \"zero\": a hole would pass");
    }
    if (on_read && reads(phase.op) && source != nullptr && source->data.access.order == Order::random_replace) {
        refuse(where + ".verify", "cannot be exact: phase \"" + source->id +
                                      "\" writes with random_replace, which leaves blocks unwritten");
    }
    if (readback && writes(phase.op) && phase.data.access.order == Order::random_replace) {
        refuse(where + ".verify", "readback cannot be exact after random_replace, which leaves blocks unwritten");
    }
}

/// The earlier phase whose data this one reads.
const Phase* source_of(const Plan& plan, std::size_t index) {
    const Phase& phase = plan.phases[index];
    for (std::size_t i = index; i-- > 0;) {
        if (writes(plan.phases[i].op) && plan.phases[i].data.files.suffix == phase.data.files.suffix &&
            (phase.data_of.empty() || plan.phases[i].id == phase.data_of)) {
            return &plan.phases[i];
        }
    }
    return nullptr;
}

bool same_files(const Phase& a, const Phase& b) {
    if (a.data.files.suffix != b.data.files.suffix) {
        return false;
    }
    return a.files.empty() || b.files.empty() || std::any_of(a.files.begin(), a.files.end(), [&b](int file) {
               return std::find(b.files.begin(), b.files.end(), file) != b.files.end();
           });
}

/// What a phase is told to read must still be there.
void check_not_replaced(const Plan& plan, std::size_t index, const Phase& source) {
    const Phase& phase = plan.phases[index];
    for (const Phase* later = &source + 1; later < &phase; ++later) {
        if (later->op == Op::write && later->open != Open::overwrite && same_files(*later, phase)) {
            refuse("phases[" + std::to_string(index) + "].data_of",
                   "names \"" + source.id + "\", but phase \"" + later->id +
                       "\" makes the files anew before: name that one, or give it open = \"overwrite\"");
        }
    }
}

void check_shift(const std::string& where, const Plan& plan, const Phase& phase) {
    const int all = plan.tasks.used > 0 ? plan.tasks.used : static_cast<int>(phase.shift.owners.size());
    if ((phase.shift.by == ShiftBy::list) != !phase.shift.owners.empty()) {
        refuse(where + ".shift.owners", "goes with by = \"list\" and with nothing else");
    }
    if (!phase.shift.owners.empty() && (static_cast<int>(phase.shift.owners.size()) != all ||
                                        std::any_of(phase.shift.owners.begin(), phase.shift.owners.end(),
                                                    [all](int owner) { return owner >= all; }))) {
        refuse(where + ".shift.owners", "must name one of the " + std::to_string(all) + " tasks for each of them");
    }
    if (phase.op == Op::remove && (phase.shift.by == ShiftBy::random || phase.shift.by == ShiftBy::list)) {
        refuse(where + ".shift", "may let two tasks remove the same file: use permute");
    }
    if (phase.shift.by != ShiftBy::none && writes(phase.op)) {
        refuse(where + ".shift", "is for reads: a task always writes its own data");
    }
}

void check_place(const std::string& where, const Plan& plan) {
    const Files& files = plan.data.files;
    if (!files.in_place()) {
        return;
    }
    if (files.mapping == Mapping::per_node || files.mapping == Mapping::many) {
        refuse(where + ".paths", "goes with mapping = \"shared\", \"per_task\" or \"per_group\"");
    }
    if (files.paths.size() > 1 && (files.mapping == Mapping::shared || files.directories != Directories::one)) {
        refuse(where + ".paths", "with more than one path needs mapping = \"per_task\" and directories = \"one\"");
    }
    if (files.directories == Directories::per_node) {
        refuse(where + ".directories", "= \"per_node\" does not go with paths");
    }
    if (!plan.target.use_existing || !plan.target.directory.empty()) {
        refuse("target", "must have use_existing and no directory, because data.files.paths says where the files lie");
    }
    if (std::any_of(plan.phases.begin(), plan.phases.end(), [](const Phase& p) { return p.separate_process; })) {
        refuse(where + ".paths", "does not go with process = \"separate\": there is no run directory for a manifest");
    }
}

/// Directories of several targets: what one run directory is for, with a part of the files in each of them.
void check_across(const std::string& where, const Plan& plan) {
    const Files& files = plan.data.files;
    if (files.across.empty()) {
        return;
    }
    if (files.in_place() || plan.target.use_existing) {
        refuse(where + ".across", "needs a directory that the run makes itself: leave out " +
                                      std::string(files.in_place() ? "paths" : "target.use_existing"));
    }
    if (files.mapping == Mapping::shared || files.mapping == Mapping::per_node) {
        refuse(where + ".across",
               "deals out the files of tasks: it goes with mapping = \"per_task\", \"per_group\" or \"many\"");
    }
    if (files.directories == Directories::per_node) {
        refuse(where + ".directories", "= \"per_node\" does not go with across");
    }
    if (plan.target.striping) {
        refuse("target.striping",
               "does not go with data.files.across: each of its directories has a layout of its own");
    }
    std::vector<std::string> all{plan.target.path};
    for (const std::string& one : files.across) {
        if (std::find(all.begin(), all.end(), one) != all.end()) {
            refuse(where + ".across", "names " + one + " twice, or the target itself: each is another target");
        }
        all.push_back(one);
    }
    for (const Phase& phase : plan.phases) {
        if (std::any_of(phase.before.begin(), phase.before.end(),
                        [](const Treatment& one) { return one.kind == "remount"; })) {
            refuse(where + ".across", "does not go with the treatment remount of phase \"" + phase.id +
                                          "\", which mounts one file system anew: use drop_page_cache");
        }
    }
}

void check_within(const Plan& plan, std::size_t index) {
    const Phase& phase = plan.phases[index];
    const std::string where = "phases[" + std::to_string(index) + "].stop.within";
    const auto end = plan.phases.begin() + static_cast<std::ptrdiff_t>(index);
    const auto found = std::find_if(plan.phases.begin(), end,
                                    [&phase](const Phase& earlier) { return earlier.id == phase.stop.within; });
    if (found == end || found->op != phase.op) {
        refuse(where, "names \"" + phase.stop.within + "\", but no earlier phase of that name does op = \"" +
                          text(phase.op) + "\"");
    }
    if (std::any_of(found + 1, end + 1, [](const Phase& later) { return later.separate_process; })) {
        refuse(where, "names \"" + phase.stop.within +
                          "\", which runs in an earlier process: what each task did there is not known any more");
    }
}

void check_phase(const Plan& plan, std::size_t index, const Offer& offer) {
    const Phase& phase = plan.phases[index];
    const Traits backend = offer.traits_of(phase.data.backend);
    const std::string where = "phases[" + std::to_string(index) + "]";
    if (phase.meta) {
        check_paced(where, phase, backend);
        check_stop(where, phase.stop);
        check_treatments(where, phase.before, offer);
        check_meta(where, plan, index);
        return;
    }
    if (!phase.stop.within.empty()) {
        refuse(where + ".stop.within", "is for walks and items of trees: for data give segments or volume");
    }
    if (phase.stop.items) {
        refuse(where + ".stop.items", "counts the items of a tree: for data give segments or volume");
    }
    check_access(phase.data_at, phase.data.access);
    check_reach(phase.data_at, phase.data, plan.tasks);
    check_paced(where, phase, backend);
    check_io(phase.data_at, phase.data, plan.tasks, offer);
    check_stop(where, phase.stop);
    check_treatments(where, phase.before, offer);
    check_lanes(where, phase);
    const Phase* source = source_of(plan, index);
    if (source == nullptr && !phase.data_of.empty()) {
        refuse(where + ".data_of", "names \"" + phase.data_of + "\", but no earlier phase of that name writes");
    }
    if (source != nullptr && !phase.data_of.empty() && !writes(phase.op)) {
        check_not_replaced(plan, index, *source);
    }
    const bool needs_data = reads(phase.op) || on_files(phase.op) || phase.op == Op::rewrite;
    if (needs_data && source == nullptr && backend.stores_data && !plan.target.use_existing) {
        refuse(where + ".op", std::string("is \"") + text(phase.op) +
                                  "\", but no earlier phase writes the data (and target.use_existing is not set)");
    }
    check_verify(where, phase, source);
    if (phase.op == Op::mixed && !phase.data.access.read_ratio) {
        refuse(where + ".access.read_ratio", "is missing: op = \"mixed\" needs the share of reads (0 to 1)");
    }
    if (phase.op != Op::mixed && phase.data.access.read_ratio) {
        refuse(where + ".access.read_ratio", "is only used with op = \"mixed\"");
    }
    if (phase.separate_process && index == 0) {
        refuse(where + ".process", "= \"separate\" has no meaning for the first phase");
    }
    if (!phase.files.empty() && phase.data.files.mapping != Mapping::many) {
        refuse(where + ".files", "is only used with files.mapping = \"many\"");
    }
    for (const int file : phase.files) {
        if (file >= phase.data.files.count) {
            refuse(where + ".files", "names file " + std::to_string(file) + ", but files.count is " +
                                         std::to_string(phase.data.files.count));
        }
    }
    if (on_files(phase.op) && phase.data.files.mapping != Mapping::many &&
        phase.data.files.mapping != Mapping::per_task &&
        !(phase.op == Op::remove && phase.data.files.mapping != Mapping::per_node)) {
        refuse(where + ".op", std::string("= \"") + text(phase.op) +
                                  "\" needs files of one task each: files.mapping = \"many\" or \"per_task\"");
    }
    check_shift(where, plan, phase);
    if (!phase.data.files.suffix.empty() && !phase.data.files.in_place()) {
        refuse(where + ".suffix", "is only used with data.files.paths");
    }
    if (phase.data.io.pause > 0 && phase.data.io.queue_depth > 1) {
        refuse(where + ".io.pause", "needs queue_depth = 1");
    }
    if (phase.barrier == Barrier::intra && phase.data.files.mapping == Mapping::many) {
        refuse(where + ".barrier",
               "= \"intra\" does not go with files.mapping = \"many\": files are opened one after the other");
    }
}

}  // namespace

bool fits_in_file(const Data& data, std::uint64_t segments, std::uint64_t tasks) {
    const Access& a = data.access;
    const uint128 sharers = data.files.mapping == Mapping::shared || data.files.mapping == Mapping::per_node ? tasks
                            : data.files.mapping == Mapping::per_group
                                ? static_cast<std::uint64_t>(std::max(1, data.files.group_size))
                                : 1;
    const uint128 room = (largest_file - a.offset) / (a.order == Order::stride ? a.stride : a.block + a.gap);
    const uint128 blocks = segments * sharers;
    return blocks <= room && (a.order != Order::stride || blocks * (a.block / a.transfer) <= room);
}

void check_plan(const Plan& plan, const Offer& offer) {
    std::set<std::string> seen;
    for (std::size_t i = 0; i < plan.phases.size(); ++i) {
        if (!seen.insert(plan.phases[i].id).second) {
            refuse("phases[" + std::to_string(i) + "].id", "\"" + plan.phases[i].id + "\" is used twice");
        }
        check_phase(plan, i, offer);
        if (!plan.phases[i].stop.within.empty()) {
            check_within(plan, i);
        }
    }
    check_files("data", plan.data.files);
    check_across("data.files", plan);
    check_place("data.files", plan);
    if (plan.observe.slice < 1000 || plan.observe.slice > 60'000'000'000) {
        refuse("observe.slice", "must be from 1 us to 1 min");
    }
    for (const auto& [limit, name] : {std::pair{plan.time_limit, "time"}, std::pair{plan.begin_limit, "begin"}}) {
        if (limit && *limit <= 0) {
            refuse(std::string("limits.") + name, "must be more than zero");
        }
    }
    for (const Phase& phase : plan.phases) {
        check_backend(phase, offer);
    }
}

}  // namespace sonde::plan
