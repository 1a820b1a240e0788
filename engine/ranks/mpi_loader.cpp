// SPDX-License-Identifier: Apache-2.0
#include "ranks/mpi_loader.hpp"

#include "ranks/team_error.hpp"

#include <dlfcn.h>
#include <unistd.h>
#include <array>
#include <atomic>
#include <cstdlib>
#include <filesystem>

namespace sonde::ranks {
namespace {

std::atomic<bool> is_stop_forbidden{false};

constexpr std::array<const char*, 2> standard_first{"sonde-mpi-abi.so", "sonde-mpi-site.so"};
constexpr std::array<const char*, 2> site_first{"sonde-mpi-site.so", "sonde-mpi-abi.so"};

const SondeMpiModule* module_of_run = nullptr;

std::string engine_folder() {
    std::error_code none;
    return std::filesystem::read_symlink("/proc/self/exe", none).parent_path().string();
}

// Returns the module, or null after appending the reason to `why`.
const SondeMpiModule* open_module(const std::string& path, bool is_probe, std::string& why) {
    const std::string name = std::filesystem::path(path).filename().string();
    const auto refuse = [&](const std::string& reason) {
        why += (why.empty() ? "" : "; ") + name + ": " + reason;
        return nullptr;
    };
    // RTLD_GLOBAL, because some MPI libraries load plug-ins later that need the symbols.
    void* library = dlopen(path.c_str(), RTLD_NOW | (is_probe ? RTLD_LOCAL : RTLD_GLOBAL));
    if (library == nullptr) {
        const char* reason = dlerror();
        return refuse(reason != nullptr ? reason : "cannot be loaded");
    }
    const auto entry = reinterpret_cast<const SondeMpiModule* (*)()>(dlsym(library, "sonde_mpi_module"));
    if (entry == nullptr) {
        dlclose(library);
        return refuse("is not an MPI module of Sonde");
    }
    const SondeMpiModule* module = entry();
    if (module == nullptr || module->version != SONDE_MPI_MODULE_VERSION) {
        return refuse("belongs to another version of Sonde");
    }
    if (!is_probe) {
        module_of_run = module;
    }
    return module;
}

}  // namespace

ModuleSearch default_search(const std::string& required_path, ModulePreference preference) {
    ModuleSearch search{.required_path = required_path, .preference = preference, .folders = {}};
    const char* forced = std::getenv("SONDE_MPI_MODULE");
    if (search.required_path.empty() && forced != nullptr) {
        search.required_path = forced;
    }
    const std::string folder = engine_folder();
    search.folders = {folder, folder + "/../lib/sonde"};
    return search;
}

const SondeMpiModule* load_module(const ModuleSearch& search) {
    std::string why;
    if (!search.required_path.empty()) {
        if (const SondeMpiModule* module = open_module(search.required_path, search.is_probe, why)) {
            return module;
        }
        throw TeamError("the MPI module that was asked for cannot be used: " + why);
    }
    for (const char* name : search.preference == ModulePreference::site ? site_first : standard_first) {
        for (const std::string& folder : search.folders) {
            const std::string path = folder + "/" + name;
            if (access(path.c_str(), R_OK) != 0) {
                continue;
            }
            if (const SondeMpiModule* module = open_module(path, search.is_probe, why)) {
                return module;
            }
        }
    }
    if (why.empty()) {
        throw TeamError(
            "MPI is needed but no MPI module was built or found in " + search.folders.front() +
            ": build one for the MPI that you use with `sonde doctor --build-mpi`, or name one in SONDE_MPI_MODULE");
    }
    throw TeamError("no MPI module can be used (" + why +
                    "): put the MPI library on LD_LIBRARY_PATH, or start with its "
                    "own launcher");
}

const SondeMpiModule* running_module() {
    return module_of_run;
}

void forbid_stop() {
    is_stop_forbidden = true;
}

bool may_stop() {
    return !is_stop_forbidden;
}

std::string explain_missing_mpi() {
    try {
        ModuleSearch search = default_search("", ModulePreference::standard);
        search.is_probe = true;
        load_module(search);
        return "";
    } catch (const TeamError& error) {
        return error.what();
    }
}

}  // namespace sonde::ranks
