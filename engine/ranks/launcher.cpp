// SPDX-License-Identifier: Apache-2.0
#include "ranks/launcher.hpp"

#include <unistd.h>
#include <array>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fstream>

namespace sonde::ranks {
namespace {

std::optional<int> read_environment_number(const EnvironmentLookup& variable, const std::string& name) {
    const auto text = variable(name);
    int value = 0;
    if (!text || text->empty()) {
        return std::nullopt;
    }
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
    if (error != std::errc() || end != text->data() + text->size() || value < 0) {
        return std::nullopt;
    }
    return value;
}

struct ProcessStatus {
    std::string name;
    long parent = 0;
    std::string started;  // clock ticks since boot: distinguishes processes that had the same id
};

std::optional<ProcessStatus> read_process_status(long id) {
    std::ifstream file("/proc/" + std::to_string(id) + "/stat");
    std::string text;
    std::getline(file, text);
    // The name is in parentheses and may contain any character, so the last ')' ends it.
    const auto open = text.find('(');
    const auto close = text.rfind(')');
    if (open == std::string::npos || close == std::string::npos || close < open) {
        return std::nullopt;
    }
    ProcessStatus facts{text.substr(open + 1, close - open - 1), 0, ""};
    const char* cursor = text.c_str() + close + 1;
    constexpr int parent_field = 1;  // after the name: state, parent, …
    constexpr int start_field = 19;
    for (int field = 0; *cursor != '\0' && field <= start_field; ++field) {
        cursor += std::strspn(cursor, " ");
        const std::size_t length = std::strcspn(cursor, " ");
        if (field == parent_field) {
            facts.parent = std::strtol(cursor, nullptr, 10);
        } else if (field == start_field) {
            facts.started.assign(cursor, length);
        }
        cursor += length;
    }
    return facts;
}

// All ranks of a hydra job on a node are descendants of one proxy, with any number of shells between.
std::string find_hydra_proxy() {
    long id = getppid();
    for (int generation = 0; generation < 64 && id > 1; ++generation) {
        const auto facts = read_process_status(id);
        if (!facts) {
            break;
        }
        if (facts->name.rfind("hydra_", 0) == 0) {
            return "hydra-" + std::to_string(id) + "-" + facts->started;
        }
        id = facts->parent;
    }
    return "";
}

// Reads rank and size. Returns false when the launcher set only one of them.
bool read_ranks(const EnvironmentLookup& variable, const char* process, const char* processes,
                LaunchEnvironment& launch) {
    const auto rank = read_environment_number(variable, process);
    const auto size = read_environment_number(variable, processes);
    if (!rank || !size || *size < 1 || *rank >= *size) {
        return false;
    }
    launch.process = *rank;
    launch.processes = *size;
    return true;
}

bool detect_openmpi(const EnvironmentLookup& variable, LaunchEnvironment& launch) {
    if (!read_ranks(variable, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", launch)) {
        return false;
    }
    launch.launcher = "openmpi";
    launch.local_index = read_environment_number(variable, "OMPI_COMM_WORLD_LOCAL_RANK").value_or(-1);
    launch.local_count = read_environment_number(variable, "OMPI_COMM_WORLD_LOCAL_SIZE").value_or(-1);
    const auto job = variable("PMIX_NAMESPACE") ? variable("PMIX_NAMESPACE") : variable("OMPI_MCA_ess_base_jobid");
    launch.job = job ? "openmpi-" + *job : "";
    launch.node_name = variable("PMIX_HOSTNAME").value_or("");
    return true;
}

bool detect_ssh(const EnvironmentLookup& variable, LaunchEnvironment& launch) {
    if (!read_ranks(variable, "SONDE_SSH_RANK", "SONDE_SSH_RANKS", launch)) {
        return false;
    }
    launch.launcher = "ssh";
    launch.local_index = read_environment_number(variable, "SONDE_SSH_LOCAL_RANK").value_or(-1);
    launch.local_count = read_environment_number(variable, "SONDE_SSH_LOCAL_RANKS").value_or(-1);
    launch.job = variable("SONDE_SSH_JOB").value_or("");
    launch.node_name = variable("SONDE_SSH_HOST").value_or("");
    return true;
}

bool detect_hydra(const EnvironmentLookup& variable, LaunchEnvironment& launch) {
    // Slurm's PMI also sets PMI_RANK, but only hydra sets MPI_LOCALNRANKS.
    if (!read_environment_number(variable, "MPI_LOCALNRANKS") ||
        !read_ranks(variable, "PMI_RANK", "PMI_SIZE", launch)) {
        return false;
    }
    launch.launcher = "hydra";
    launch.local_index = read_environment_number(variable, "MPI_LOCALRANKID").value_or(-1);
    launch.local_count = read_environment_number(variable, "MPI_LOCALNRANKS").value_or(-1);
    if (launch.processes > 1) {
        launch.job = find_hydra_proxy();
    }
    launch.node_name = variable("PMI_HOSTNAME").value_or("");
    return true;
}

bool detect_slurm(const EnvironmentLookup& variable, LaunchEnvironment& launch) {
    // Without a step (a batch script, a login to an allocation) SLURM_PROCID does not count ranks.
    if (!variable("SLURM_STEP_ID") || !read_ranks(variable, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", launch)) {
        return false;
    }
    launch.launcher = "slurm";
    launch.local_index = read_environment_number(variable, "SLURM_LOCALID").value_or(-1);
    launch.local_count = read_environment_number(variable, "SLURM_STEP_NUM_NODES") == 1 ? launch.processes : -1;
    launch.node_name = variable("SLURMD_NODENAME").value_or("");
    launch.job = "slurm-" + variable("SLURM_JOB_ID").value_or("0") + "." + variable("SLURM_STEP_ID").value_or("0");
    return true;
}

bool detect_flux(const EnvironmentLookup& variable, LaunchEnvironment& launch) {
    if (!read_ranks(variable, "FLUX_TASK_RANK", "FLUX_JOB_SIZE", launch)) {
        return false;
    }
    launch.launcher = "flux";
    launch.local_index = read_environment_number(variable, "FLUX_TASK_LOCAL_ID").value_or(-1);
    launch.local_count = read_environment_number(variable, "FLUX_JOB_NNODES") == 1 ? launch.processes : -1;
    launch.job = "flux-" + variable("FLUX_JOB_ID").value_or("0");
    return true;
}

bool detect_jsrun(const EnvironmentLookup& variable, LaunchEnvironment& launch) {
    if (!read_ranks(variable, "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE", launch)) {
        return false;
    }
    launch.launcher = "jsrun";
    launch.local_index = read_environment_number(variable, "JSM_NAMESPACE_LOCAL_RANK").value_or(-1);
    launch.local_count = read_environment_number(variable, "JSM_NAMESPACE_LOCAL_SIZE").value_or(-1);
    launch.job = "jsrun-" + variable("LSB_JOBID").value_or("0") + "." + variable("JSM_JSRUN_STEP_ID").value_or("0");
    return true;
}

bool detect_pmix(const EnvironmentLookup& variable, LaunchEnvironment& launch) {
    const auto rank = read_environment_number(variable, "PMIX_RANK");
    const auto job = variable("PMIX_NAMESPACE");
    if (!rank || !job) {
        return false;
    }
    // PMIx stores the sizes in its server, not in the environment, so only MPI can read them.
    launch =
        LaunchEnvironment{"pmix", *rank, -1, -1, -1, false, variable("PMIX_HOSTNAME").value_or(""), "pmix-" + *job};
    return true;
}

}  // namespace

LaunchEnvironment detect_launch(const EnvironmentLookup& variable) {
    // A launcher inside an allocation sets more variables than the batch system, so inner launchers come first.
    constexpr std::array probes{detect_ssh,  detect_openmpi, detect_hydra, detect_slurm,
                                detect_flux, detect_jsrun,   detect_pmix};
    for (const auto probe : probes) {
        LaunchEnvironment launch;
        if (probe(variable, launch)) {
            launch.pmix = variable("PMIX_RANK").has_value();
            return launch;
        }
    }
    return {};
}

LaunchEnvironment detect_launch() {
    return detect_launch([](const std::string& name) -> std::optional<std::string> {
        const char* value = std::getenv(name.c_str());
        return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
    });
}

std::string launcher_name() {
    return detect_launch().launcher;
}

std::string host_name() {
    std::array<char, 256> name{};
    if (gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') {
        return "unknown";
    }
    return name.data();
}

}  // namespace sonde::ranks
