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

std::optional<int> number(const Lookup& variable, const std::string& name) {
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

struct Process {
    std::string name;
    long parent = 0;
    std::string started;  // clock ticks since boot: tells processes with the same number apart
};

std::optional<Process> process_facts(long id) {
    std::ifstream file("/proc/" + std::to_string(id) + "/stat");
    std::string text;
    std::getline(file, text);
    // The name is in parentheses and may itself hold any character: the last ')' ends it.
    const auto open = text.find('(');
    const auto close = text.rfind(')');
    if (open == std::string::npos || close == std::string::npos || close < open) {
        return std::nullopt;
    }
    Process facts{text.substr(open + 1, close - open - 1), 0, ""};
    const char* rest = text.c_str() + close + 1;
    constexpr int parent_field = 1;  // after the name: state, parent, …
    constexpr int start_field = 19;
    for (int field = 0; *rest != '\0' && field <= start_field; ++field) {
        rest += std::strspn(rest, " ");
        const std::size_t length = std::strcspn(rest, " ");
        if (field == parent_field) {
            facts.parent = std::strtol(rest, nullptr, 10);
        } else if (field == start_field) {
            facts.started.assign(rest, length);
        }
        rest += length;
    }
    return facts;
}

// All ranks of a hydra job on a node descend from one proxy, however many shells are between.
std::string hydra_proxy() {
    long id = getppid();
    for (int generation = 0; generation < 64 && id > 1; ++generation) {
        const auto facts = process_facts(id);
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

// Process and processes; no answer when the launcher set only one of them.
bool ranks(const Lookup& variable, const char* process, const char* processes, Launched& found) {
    const auto rank = number(variable, process);
    const auto size = number(variable, processes);
    if (!rank || !size || *size < 1 || *rank >= *size) {
        return false;
    }
    found.process = *rank;
    found.processes = *size;
    return true;
}

bool openmpi(const Lookup& variable, Launched& found) {
    if (!ranks(variable, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", found)) {
        return false;
    }
    found.by = "openmpi";
    found.local = number(variable, "OMPI_COMM_WORLD_LOCAL_RANK").value_or(-1);
    found.locals = number(variable, "OMPI_COMM_WORLD_LOCAL_SIZE").value_or(-1);
    const auto job = variable("PMIX_NAMESPACE") ? variable("PMIX_NAMESPACE") : variable("OMPI_MCA_ess_base_jobid");
    found.job = job ? "openmpi-" + *job : "";
    return true;
}

bool hydra(const Lookup& variable, Launched& found) {
    // Slurm's own PMI sets PMI_RANK too; only hydra says how many ranks are on the node in this variable.
    if (!number(variable, "MPI_LOCALNRANKS") || !ranks(variable, "PMI_RANK", "PMI_SIZE", found)) {
        return false;
    }
    found.by = "hydra";
    found.local = number(variable, "MPI_LOCALRANKID").value_or(-1);
    found.locals = number(variable, "MPI_LOCALNRANKS").value_or(-1);
    if (found.processes > 1) {
        found.job = hydra_proxy();
    }
    return true;
}

bool slurm(const Lookup& variable, Launched& found) {
    // Without a step (a batch script, a login to an allocation) SLURM_PROCID does not count ranks.
    if (!variable("SLURM_STEP_ID") || !ranks(variable, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", found)) {
        return false;
    }
    found.by = "slurm";
    found.local = number(variable, "SLURM_LOCALID").value_or(-1);
    found.locals = number(variable, "SLURM_STEP_NUM_NODES") == 1 ? found.processes : -1;
    found.job = "slurm-" + variable("SLURM_JOB_ID").value_or("0") + "." + variable("SLURM_STEP_ID").value_or("0");
    return true;
}

bool flux(const Lookup& variable, Launched& found) {
    if (!ranks(variable, "FLUX_TASK_RANK", "FLUX_JOB_SIZE", found)) {
        return false;
    }
    found.by = "flux";
    found.local = number(variable, "FLUX_TASK_LOCAL_ID").value_or(-1);
    found.locals = number(variable, "FLUX_JOB_NNODES") == 1 ? found.processes : -1;
    found.job = "flux-" + variable("FLUX_JOB_ID").value_or("0");
    return true;
}

bool jsrun(const Lookup& variable, Launched& found) {
    if (!ranks(variable, "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE", found)) {
        return false;
    }
    found.by = "jsrun";
    found.local = number(variable, "JSM_NAMESPACE_LOCAL_RANK").value_or(-1);
    found.locals = number(variable, "JSM_NAMESPACE_LOCAL_SIZE").value_or(-1);
    found.job = "jsrun-" + variable("LSB_JOBID").value_or("0") + "." + variable("JSM_JSRUN_STEP_ID").value_or("0");
    return true;
}

bool pmix(const Lookup& variable, Launched& found) {
    const auto rank = number(variable, "PMIX_RANK");
    const auto job = variable("PMIX_NAMESPACE");
    if (!rank || !job) {
        return false;
    }
    // PMIx keeps the sizes in its server, not in the environment: only MPI can tell.
    found = Launched{"pmix", *rank, -1, -1, -1, false, "pmix-" + *job};
    return true;
}

}  // namespace

Launched launched(const Lookup& variable) {
    // A launcher inside an allocation sets more than the batch system around it: the inner one first.
    constexpr std::array probes{openmpi, hydra, slurm, flux, jsrun, pmix};
    for (const auto probe : probes) {
        Launched found;
        if (probe(variable, found)) {
            found.pmix = variable("PMIX_RANK").has_value();
            return found;
        }
    }
    return {};
}

Launched launched() {
    return launched([](const std::string& name) -> std::optional<std::string> {
        const char* value = std::getenv(name.c_str());
        return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
    });
}

std::string host_name() {
    std::array<char, 256> name{};
    if (gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') {
        return "unknown";
    }
    return name.data();
}

}  // namespace sonde::ranks
