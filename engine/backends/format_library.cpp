// SPDX-License-Identifier: Apache-2.0
#include "backends/format_library.hpp"

#include "ranks/mpi_loader.hpp"

#include <dlfcn.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <cerrno>
#include <cstdlib>
#include <exception>

namespace sonde::backends {
namespace {

/// File name of the shared library that holds `address`: "libmpi.so.40".
std::string find_library_name(const void* address) {
    Dl_info info{};
    if (dladdr(address, &info) == 0 || info.dli_fname == nullptr) {
        return "unknown";
    }
    const std::string path = info.dli_fname;
    return path.substr(path.rfind('/') + 1);
}

bool contains(const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
}

bool is_mpich(const std::string& mpi) {
    return contains(mpi, "mpich") || mpi.ends_with(".so.12");
}

bool is_standard_abi(const std::string& mpi) {
    return contains(mpi, "mpi_abi");
}

/// The names to try. A build for another MPI is not even loaded, because that would start the other MPI's plug-ins.
std::vector<std::string> list_candidates(const FormatLibrarySearch& search, const std::string& mpi) {
    if (const char* forced = std::getenv(search.variable); forced != nullptr && *forced != '\0') {
        return {forced};
    }
    std::vector<const char*> bases;
    if (!is_standard_abi(mpi)) {
        bases = is_mpich(mpi) ? search.mpich_names : search.openmpi_names;
    }
    bases.insert(bases.end(), search.names.begin(), search.names.end());
    std::vector<std::string> candidates;
    for (const char* base : bases) {
        for (const char* version : search.versions) {
            candidates.push_back(std::string(base) + version);
        }
    }
    return candidates;
}

/// Null after appending the reason to `why`; a library that is simply absent is no reason.
void* open_candidate(const FormatLibrarySearch& search, const SondeMpiModule& module, const std::string& mpi,
                     const std::string& file, std::string& why) {
    const bool is_forced = std::getenv(search.variable) != nullptr;
    void* handle = dlopen(file.c_str(), RTLD_LAZY | RTLD_LOCAL);
    std::string reason;
    if (handle == nullptr) {
        const char* message = dlerror();
        reason = is_forced ? std::string("cannot be loaded: ") + (message != nullptr ? message : "unknown error") : "";
    } else if (dlsym(handle, search.parallel_function) == nullptr) {
        reason = file + " is built without MPI";
    } else if (const void* other = dlsym(handle, "MPI_Comm_dup"); other != module.implementation()) {
        reason = file + " is built for " + find_library_name(other) + ", but the MPI here is " + mpi;
    } else {
        return handle;
    }
    if (!reason.empty()) {
        why += (why.empty() ? "" : "; ") + reason;
    }
    if (handle != nullptr) {
        dlclose(handle);
    }
    return nullptr;
}

}  // namespace

FormatLibrary find_format_library(const FormatLibrarySearch& search, const SondeMpiModule& module) {
    FormatLibrary library;
    const std::string mpi = find_library_name(module.implementation());
    std::string why;
    for (const std::string& file : list_candidates(search, mpi)) {
        library.handle = open_candidate(search, module, mpi, file, why);
        if (library.handle != nullptr) {
            library.file = file;
            return library;
        }
    }
    library.missing_reason = std::string("no parallel ") + search.title + " for the MPI here (" + mpi + ", " +
                             module.flavor + ") was found" + (why.empty() ? "" : " (" + why + ")") +
                             ": install one, for Open MPI on Debian " + search.package +
                             ", start with the launcher of its MPI, or name its file in " + search.variable;
    return library;
}

FormatLibrary find_format_library(const FormatLibrarySearch& search) {
    if (const SondeMpiModule* module = ranks::running_module()) {
        return find_format_library(search, *module);
    }
    try {
        ranks::ModuleSearch probe = ranks::default_search("", ranks::ModulePreference::site);
        probe.is_probe = true;
        return find_format_library(search, *ranks::load_module(probe));
    } catch (const std::exception& error) {
        return {.handle = nullptr, .file = {}, .missing_reason = error.what()};
    }
}

bool is_ompio_used() {
    const SondeMpiModule* module = ranks::running_module();
    const std::string mpi = module != nullptr ? find_library_name(module->implementation()) : "";
    if (mpi.empty() || is_mpich(mpi) || is_standard_abi(mpi)) {
        return false;
    }
    const char* chosen = std::getenv("OMPI_MCA_io");
    const std::string component = chosen != nullptr ? chosen : "";
    return component.empty() || (contains(component, "ompio") && !component.starts_with('^'));
}

bool must_create_file(const OpenRequest& request) {
    struct stat info {};
    if (!request.write || request.truncate || request.exclusive) {
        return request.write;
    }
    return ::stat(request.path.c_str(), &info) == 0 ? info.st_size == 0 : request.create;
}

bool is_out_of_space(int result, const IoRequest& operation, const std::string& path) {
    struct statvfs info {};
    return result == -EIO && operation.is_write && ::statvfs(path.c_str(), &info) == 0 &&
           static_cast<std::uint64_t>(info.f_bavail) * info.f_frsize < operation.length;
}

}  // namespace sonde::backends
