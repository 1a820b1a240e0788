// SPDX-License-Identifier: Apache-2.0
#include "backends/runtime_library.hpp"

#include "backends/format_library.hpp"

#include <dlfcn.h>
#include <cstdlib>
#include <stdexcept>

namespace sonde::backends {

void bind_library(const RuntimeLibrary& library, const std::vector<RuntimeFunction>& functions) {
    const char* forced = std::getenv(library.variable);
    const std::string file = forced != nullptr && *forced != '\0' ? forced : library.file;
    void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
        const char* reason = dlerror();
        throw std::runtime_error(std::string(library.title) + " cannot be loaded (" +
                                 (reason != nullptr ? reason : file) + "): " + library.remedy +
                                 ", or name its file in " + library.variable);
    }
    for (const RuntimeFunction& function : functions) {
        if (!bind_symbol(handle, function.name, static_cast<void**>(function.pointer))) {
            throw std::runtime_error(file + " has no " + function.name + ": Sonde needs " + library.version +
                                     "; name another file in " + library.variable);
        }
    }
}

}  // namespace sonde::backends
