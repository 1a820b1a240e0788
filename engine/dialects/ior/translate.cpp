// SPDX-License-Identifier: Apache-2.0
#include "dialects/ior/translate.hpp"

#include "dialects/ior/file_names.hpp"
#include "plan/plan_error.hpp"

#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace sonde::dialects::ior {
namespace {

using nlohmann::ordered_json;

/// Bytes of the smallest of the files that a test reads, in whole transfers; 0 when one is missing or too small.
std::int64_t smallest_file(const IorSettings& s, const TaskPlacement& placement) {
    std::int64_t least = INT64_MAX;
    for (int task = 0; task < (s.file_per_process ? placement.active_tasks(s) : 1); ++task) {
        struct stat info {};
        const std::string path = get_test_path(s, task) + (s.multiple_files ? ".0" : "");
        least = ::stat(path.c_str(), &info) == 0 ? std::min<std::int64_t>(least, info.st_size) : 0;
    }
    return least / s.transfer * s.transfer;
}

std::string get_parent_directory(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

const char* choose_backend(const IorSettings& s) {
    static constexpr std::pair<std::string_view, const char*> apis[] = {
        {"MPIIO", "mpiio"}, {"HDF5", "hdf5"}, {"NCMPI", "pnetcdf"}, {"MMAP", "mmap"}, {"AIO", "io_uring"}};
    for (const auto& [api, backend] : apis) {
        if (s.api == api) {
            return backend;
        }
    }
    if (s.api == "POSIX") {
        return s.gpu_direct ? "cufile" : "posix";
    }
    const bool delays = s.dummy_transfer_us > 0 || s.dummy_create_us > 0 || s.dummy_close_us > 0 || s.dummy_sync_us > 0;
    return delays ? "paced" : "null";
}

/// The delays of DUMMY.
ordered_json build_paced_member(const IorSettings& s) {
    const auto us = [](std::int64_t delay) { return std::to_string(std::max<std::int64_t>(0, delay)) + "us"; };
    return {{"virtual_clock", false},
            {"delays",
             {{"create", us(s.dummy_create_us)},
              {"transfer", us(s.dummy_transfer_us)},
              {"close", us(s.dummy_close_us)},
              {"sync", us(s.dummy_sync_us)},
              {"first_task_only", s.dummy_only_first}}}};
}

ordered_json build_io_member(const IorSettings& s) {
    ordered_json io = ordered_json::object();
    if (s.direct && (s.api == "POSIX" || s.api == "AIO")) {
        io["direct"] = true;
    }
    if (s.gpu_memory != 0) {
        io["gpus"] = s.gpus;
    }
    if (s.fsync_per_write) {
        io["fsync"] = "per_op";
    } else if (s.fsync) {
        io["fsync"] = "end";
    }
    if (s.api == "AIO" && s.aio_pending > 1) {
        io["queue_depth"] = s.aio_pending;
    }
    if (uses_mpi(s) && s.collective && !s.file_per_process) {
        io["collective"] = true;
    }
    if (uses_mpi(s) && !s.hints.empty()) {
        io["hints"] = s.hints;
    }
    if (s.api == "HDF5") {
        if (s.hdf_chunk > 0) {
            io["chunk"] = s.hdf_chunk * 8;
        }
        if (s.hdf_alignment > 1) {
            io["alignment"] = s.hdf_alignment;
        }
        if (s.hdf_collective_metadata) {
            io["collective_metadata"] = true;
        }
    }
    if (s.api == "MPIIO") {
        if (s.mpi_view) {
            io["view"] = true;
        }
        if (s.mpi_preallocate) {
            // Preallocation may read and write back existing data, so it is not used in a file that other tasks already
            // write.
            io["preallocate"] = s.collective || s.file_per_process ? "fallocate" : "truncate";
        }
    }
    if (s.single_attempt) {
        io["continue_short"] = false;
    }
    if (s.operation_delay > 0) {
        io["pause"] = std::to_string(s.operation_delay) + "us";
    }
    return io;
}

ordered_json build_payload_member(const IorSettings& s, std::int64_t now) {
    static constexpr const char* kinds[] = {"ior_timestamp", "ior_offset", "ior_incompressible", "ior_random"};
    // Random packets take no time for a seed: IOR would not find its own data again.
    const std::int64_t signature = s.signature != 0 || s.packet == Packet::random ? s.signature : now;
    return {{"kind", kinds[static_cast<int>(s.packet)]}, {"seed", static_cast<std::uint32_t>(signature)}};
}

ordered_json make_access_table(const IorSettings& s, const TaskPlacement& placement, std::int64_t now) {
    ordered_json access{{"transfer", s.transfer}, {"block", s.block}, {"segments", s.segments}};
    if (s.random_offset > 0) {
        const std::int64_t seed = s.random_offset_seed == -1 ? now : s.random_offset_seed;
        access["order"] = s.random_offset == 1 ? "random_permute" : "random_replace";
        access["scope"] = !s.file_per_process ? "file" : s.random_offset == 1 ? "block" : "task";
        access["seed"] = static_cast<std::uint32_t>(seed);
        // Drawn with repetition from what there is, also when that is less than the transfers asked for.
        if (const std::int64_t there = s.random_offset > 1 && !s.write ? smallest_file(s, placement) : 0; there > 0) {
            access["within"] = there;
        }
    }
    return access;
}

ordered_json build_stop_member(const IorSettings& s) {
    ordered_json stop = ordered_json::object();
    if (s.deadline > 0) {
        stop["stonewall"] = std::to_string(s.deadline) + "s";
        if (s.wear_out) {
            stop["wearout"] = true;
        }
    }
    if (s.min_seconds > 0) {
        stop["min_time"] = std::to_string(s.min_seconds) + "s";
    }
    if (s.wear_out_iterations > 0) {
        stop["operations"] = s.wear_out_iterations;
    }
    return stop;
}

ordered_json list_treatments_before_phase(const IorSettings& s, const TaskPlacement& placement) {
    ordered_json before = ordered_json::array();
    if (s.test_delay > 0) {
        before.push_back({{"kind", "sleep"}, {"time", std::to_string(s.test_delay) + "s"}});
    }
    double share = s.memory_share;
    if (s.memory_per_task > 0) {
        const double memory = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
        share = static_cast<double>(s.memory_per_task) * placement.tasks_per_node(s) / memory;
    }
    if (share > 0.95) {
        throw plan::PlanError("memoryPerTask for all tasks of a node is more than 95 % of its memory: ask for less");
    }
    if (share > 0) {
        before.push_back({{"kind", "memory_hog"}, {"fraction", share}});
    }
    return before;
}

/// The striping of new files, as `target.striping`; empty: not requested. IOR sets stripes with its POSIX interface.
ordered_json build_striping_member(const IorSettings& s) {
    ordered_json striping = ordered_json::object();
    if (s.api != "POSIX") {
        return striping;
    }
    if (s.stripe_count != 0) {
        striping["count"] = s.stripe_count;
    }
    if (s.stripe_size != 0) {
        striping["size"] = s.stripe_size;
    }
    if (!s.stripe_pool.empty()) {
        striping["pool"] = s.stripe_pool;
    }
    if (s.stripe_start >= 0) {
        striping["start"] = s.stripe_start;
    }
    return striping;
}

/// The phases of one test.
class PlanBuilder {
 public:
    PlanBuilder(const IorSettings& s, const TaskPlacement& placement, std::optional<std::int64_t> status)
        : settings_(s), placement_(placement), status_(status), before_(list_treatments_before_phase(s, placement)) {}

    Translation build() {
        for (int repetition = 0; repetition < settings_.repetitions; ++repetition) {
            if (settings_.write) {
                add_write_phases(repetition);
            }
            if (settings_.check_write) {
                add_check_phase(repetition);
            }
            if (settings_.read || settings_.check_read) {
                add_read_phase(repetition);
            }
            if (!settings_.keep && settings_.api != "DUMMY") {
                add_remove_phase(repetition);
            }
        }
        return std::move(translation_);
    }

 private:
    ordered_json make_phase(const char* op, IorStep::StepKind kind, const char* name, int repetition) {
        const std::string id = std::string(name) + "-" + std::to_string(repetition);
        translation_.steps.push_back({id, kind, repetition});
        ordered_json phase{{"id", id}, {"op", op}};
        if (settings_.multiple_files) {
            phase["suffix"] = "." + std::to_string(repetition);
        }
        return phase;
    }

    void add_phase(ordered_json phase) { translation_.plan["phases"].push_back(std::move(phase)); }

    void set_operations_file(ordered_json& phase, int repetition) const {
        if (!settings_.operations_prefix.empty()) {
            phase["operations_file"] = settings_.operations_prefix + "-" + std::to_string(repetition);
        }
    }

    void set_stop_and_barrier(ordered_json& phase, const ordered_json& stop) const {
        if (!stop.empty()) {
            phase["stop"] = stop;
        }
        if (settings_.intra_barriers) {
            phase["barrier"] = "intra";
        }
    }

    void add_write_phases(int repetition) {
        bool fresh = !settings_.use_existing;
        if (settings_.random_prefill > 0) {
            ordered_json fill = make_phase("write", IorStep::StepKind::prefill, "prefill", repetition);
            fill["open"] = fresh ? "truncate" : "overwrite";
            fill["measure"] = false;
            fill["access"] = {{"transfer", settings_.random_prefill},
                              {"block", settings_.block},
                              {"segments", settings_.segments},
                              {"order", "sequential"}};
            add_phase(fill);
            fresh = false;
        }
        ordered_json step = make_phase("write", IorStep::StepKind::write, "write", repetition);
        step["open"] = fresh ? "truncate" : "overwrite";
        set_operations_file(step, repetition);
        if (!before_.empty()) {
            step["before"] = before_;
        }
        set_stop_and_barrier(step, build_stop_member(settings_));
        add_phase(step);
    }

    void add_check_phase(int repetition) {
        ordered_json step = make_phase("read", IorStep::StepKind::check_write, "check", repetition);
        step["measure"] = false;
        step["verify"] = "on_read";
        step["io"] = {{"fsync", "none"}};
        if (settings_.reorder != 0) {
            shift_tasks_by_nodes(step, settings_.task_offset + 1);
        }
        if (settings_.wear_out_iterations > 0) {
            step["stop"] = {{"operations", settings_.wear_out_iterations}};
        }
        add_phase(step);
    }

    void add_read_phase(int repetition) {
        ordered_json step = make_phase("read", IorStep::StepKind::read, "read", repetition);
        if (settings_.check_read) {
            step["verify"] = "on_read";
        }
        set_operations_file(step, repetition);
        if (!before_.empty()) {
            step["before"] = before_;
        }
        if (settings_.reorder != 0) {
            shift_tasks_by_nodes(step, settings_.task_offset);
        } else if (settings_.reorder_random != 0) {
            step["shift"] = {{"by", "list"}, {"owners", shuffle_owners(settings_, placement_, repetition)}};
        }
        ordered_json stop = build_stop_member(settings_);
        if (status_ && *status_ > 0) {
            stop["operations"] = *status_;
        }
        set_stop_and_barrier(step, stop);
        add_phase(step);
    }

    void add_remove_phase(int repetition) {
        ordered_json step = make_phase("remove", IorStep::StepKind::remove, "remove", repetition);
        if (settings_.keep_with_error) {
            step["unless_mismatch"] = true;
        }
        add_phase(step);
    }

    /// Shifts by the number of tasks on `nodes` nodes.
    void shift_tasks_by_nodes(ordered_json& step, std::int64_t nodes) const {
        const int active = placement_.active_tasks(settings_);
        const std::int64_t tasks =
            nodes * (placement_.fills_nodes_in_order ? placement_.tasks_per_node(settings_) : 1) % active;
        if (tasks != 0) {
            step["shift"] = {{"by", "tasks"}, {"n", tasks}};
        }
    }

    const IorSettings& settings_;
    const TaskPlacement& placement_;
    std::optional<std::int64_t> status_;
    ordered_json before_;
    Translation translation_;
};

}  // namespace

std::vector<int> shuffle_owners(const IorSettings& s, const TaskPlacement& placement, int repetition) {
    const int tasks = placement.active_tasks(s);
    const std::int64_t seed = s.reorder_seed < 0 ? -s.reorder_seed + repetition : s.reorder_seed;
    std::vector<int> owners(static_cast<std::size_t>(tasks));
    if (s.reorder_random == 1) {
        const std::int64_t nodes = std::min<std::int64_t>(s.task_offset, (s.nodes > 0 ? s.nodes : placement.nodes) - 1);
        const std::int64_t least = std::min<std::int64_t>(nodes * placement.tasks_per_node(s), tasks - 1);
        for (int task = 0; task < tasks; ++task) {
            srand(static_cast<unsigned>(task + seed));
            int offset = rand() % tasks;
            while (offset < least) {
                offset = rand() % tasks;
            }
            owners[static_cast<std::size_t>(task)] = (task + offset) % tasks;
        }
        return owners;
    }
    srand(static_cast<unsigned>(seed));
    for (int task = 0; task < tasks; ++task) {
        owners[static_cast<std::size_t>(task)] = task;
    }
    for (int task = 0; task < tasks; ++task) {
        const int other = task + rand() % (tasks - task);
        std::swap(owners[static_cast<std::size_t>(task)], owners[static_cast<std::size_t>(other)]);
    }
    return owners;
}

Translation translate(const IorSettings& s, const TaskPlacement& placement, int number, std::int64_t now,
                      std::optional<std::int64_t> status) {
    const std::vector<std::string> paths = list_test_paths(s);
    const int active = placement.active_tasks(s);
    Translation translation = PlanBuilder(s, placement, status).build();
    ordered_json plan{{"schema", "sonde-plan/2"}, {"id", "ior-" + std::to_string(number)}};
    plan["target"] = {
        {"path", get_parent_directory(paths.front())}, {"use_existing", true}, {"keep", s.keep}, {"min_free", 0}};
    if (const ordered_json striping = build_striping_member(s); !striping.empty()) {
        plan["target"]["striping"] = striping;
    }
    if (active < placement.tasks) {
        plan["tasks"] = {{"active", active}};
    }
    ordered_json files{{"mapping", s.file_per_process ? "per_task" : "shared"}};
    files["paths"] = s.file_per_process ? paths : std::vector<std::string>{paths.front()};
    if (s.unique_directory) {
        files["directories"] = "per_task";
    }
    ordered_json data{
        {"backend", choose_backend(s)}, {"files", files}, {"access", make_access_table(s, placement, now)}};
    if (const ordered_json io = build_io_member(s); !io.empty()) {
        data["io"] = io;
    }
    data["payload"] = build_payload_member(s, now);
    if (data.at("backend") == "paced") {
        data["paced"] = build_paced_member(s);
    }
    plan["data"] = data;
    plan["phases"] = translation.plan["phases"];
    if (s.max_minutes > 0) {
        plan["limits"] = {{"begin", std::to_string(s.max_minutes) + "min"}};
    }
    translation.plan = std::move(plan);
    return translation;
}

}  // namespace sonde::dialects::ior
