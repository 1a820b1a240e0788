// SPDX-License-Identifier: Apache-2.0
// A library that is loaded at run time, so that the engine builds and runs where it is not installed.
#pragma once

#include <string>
#include <vector>

namespace sonde::backends {

struct RuntimeLibrary {
    const char* title;     ///< "the driver of NVIDIA GPUs"
    const char* variable;  ///< environment variable that names another file
    const char* file;      ///< "libcuda.so.1"
    const char* remedy;    ///< what to do where it is missing: "install it, leave out io.gpus"
    const char* version;   ///< "the driver of CUDA 11 or later"
};

struct RuntimeFunction {
    const char* name;
    void* pointer;  ///< address of the pointer that receives the function

    /// `receiver` is that address: of a pointer to a function, or of a `void*`.
    template <typename Function>
    RuntimeFunction(const char* function_name, Function** receiver)
        : name(function_name), pointer(static_cast<void*>(receiver)) {}
};

/// Sets all pointers. Returns the name of the first function that the library lacks, or null.
const char* bind_functions(void* handle, const std::vector<RuntimeFunction>& functions);

/// Loads the library for the rest of the process and sets all pointers. Throws std::runtime_error with one sentence.
void bind_library(const RuntimeLibrary& library, const std::vector<RuntimeFunction>& functions);

}  // namespace sonde::backends
