// SPDX-License-Identifier: Apache-2.0
// NVIDIA's cuFile (GPUDirect Storage), loaded at run time. The declarations are those of version 1.1 and later;
// tests/engine/gpu compares them with the real header.
#pragma once

#include <sys/types.h>
#include <cstddef>
#include <string>

namespace sonde::backends {

/// CUfileError_t.
struct CuFileError {
    int cufile_status = 0;  ///< CUfileOpError; 0 = success
    int cuda_status = 0;    ///< CUresult
};

constexpr int cufile_opaque_descriptor = 1;  ///< CU_FILE_HANDLE_TYPE_OPAQUE_FD

/// CUfileDescr_t.
struct CuFileDescription {
    int type = cufile_opaque_descriptor;
    union {
        int descriptor;
        void* handle;
    };
    const void* operations = nullptr;
};

using CuFileHandle = void*;  ///< CUfileHandle_t

/// The functions that are called, by their names without cuFile. Addresses of GPU memory are passed as pointers.
struct CuFileFunctions {
    CuFileError (*DriverOpen)() = nullptr;
    CuFileError (*HandleRegister)(CuFileHandle*, CuFileDescription*) = nullptr;
    void (*HandleDeregister)(CuFileHandle) = nullptr;
    CuFileError (*BufRegister)(const void*, std::size_t, int) = nullptr;
    CuFileError (*BufDeregister)(const void*) = nullptr;
    ssize_t (*Read)(CuFileHandle, void*, std::size_t, off_t, off_t) = nullptr;
    ssize_t (*Write)(CuFileHandle, const void*, std::size_t, off_t, off_t) = nullptr;
};

/// The library, loaded once a process. SONDE_CUFILE_LIBRARY names another file than libcufile.so.0. Throws
/// std::runtime_error with one sentence.
const CuFileFunctions& load_cufile();

/// The text of a cuFile error: "GPUDirect Storage not supported on current file".
std::string describe_cufile_error(int error);

}  // namespace sonde::backends
