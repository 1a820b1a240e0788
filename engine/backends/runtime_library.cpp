// SPDX-License-Identifier: Apache-2.0
#include "backends/runtime_library.hpp"

#include <dlfcn.h>
#include <cstdlib>
#include <stdexcept>

namespace sonde::backends {

const char* bind_functions(void* handle, const std::vector<RuntimeFunction>& functions) {
    for (const RuntimeFunction& function : functions) {
        void*& pointer = *static_cast<void**>(function.pointer);
        pointer = dlsym(handle, function.name);
        if (pointer == nullptr) {
            return function.name;
        }
    }
    return nullptr;
}

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
    if (const char* missing = bind_functions(handle, functions); missing != nullptr) {
        throw std::runtime_error(file + " has no " + missing + ": Sonde needs " + library.version +
                                 "; name another file in " + library.variable);
    }
}

}  // namespace sonde::backends
