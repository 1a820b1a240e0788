// SPDX-License-Identifier: Apache-2.0
// The driver of NVIDIA GPUs, loaded at run time: the engine builds and runs where there is none. The declarations are
// those of CUDA 11 and later; tests/engine/gpu compares them with the real header.
#pragma once

#include "backends/backend.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace sonde::backends {

using CudaAddress = unsigned long long;  ///< CUdeviceptr
using CudaContext = struct CUctx_st*;    ///< CUcontext
using CudaStream = struct CUstream_st*;  ///< CUstream

constexpr int cuda_success = 0;                       ///< CUDA_SUCCESS
constexpr unsigned cuda_host_register_portable = 1U;  ///< CU_MEMHOSTREGISTER_PORTABLE
constexpr unsigned cuda_stream_non_blocking = 1U;     ///< CU_STREAM_NON_BLOCKING

/// The functions of the driver that are called, by their names without cu. Each returns a CUresult.
struct CudaFunctions {
    int (*Init)(unsigned) = nullptr;
    int (*GetErrorString)(int, const char**) = nullptr;
    int (*DeviceGetCount)(int*) = nullptr;
    int (*DeviceGet)(int*, int) = nullptr;
    int (*DevicePrimaryCtxRetain)(CudaContext*, int) = nullptr;
    int (*DevicePrimaryCtxRelease)(int) = nullptr;
    int (*CtxSetCurrent)(CudaContext) = nullptr;
    int (*MemAlloc)(CudaAddress*, std::size_t) = nullptr;
    int (*MemFree)(CudaAddress) = nullptr;
    int (*MemHostRegister)(void*, std::size_t, unsigned) = nullptr;
    int (*MemHostUnregister)(void*) = nullptr;
    int (*MemcpyHtoDAsync)(CudaAddress, const void*, std::size_t, CudaStream) = nullptr;
    int (*MemcpyDtoHAsync)(void*, CudaAddress, std::size_t, CudaStream) = nullptr;
    int (*StreamCreate)(CudaStream*, unsigned) = nullptr;
    int (*StreamDestroy)(CudaStream) = nullptr;
    int (*StreamSynchronize)(CudaStream) = nullptr;
};

/// The driver, loaded once a process, not yet initialized: a process that forks afterwards must not have done that.
/// SONDE_CUDA_LIBRARY names another file than libcuda.so.1. Throws std::runtime_error with one sentence.
const CudaFunctions& load_cuda();

/// The driver's words for an error: "out of memory".
std::string describe_cuda_error(const CudaFunctions& cuda, int result);

/// Whether GPUs with these numbers, as the driver counts them, can be used here. The first call queries the driver in a
/// separate process, because an initialized driver does not survive fork(2); later calls use its report.
Availability find_gpus(const std::vector<int>& gpus);

}  // namespace sonde::backends
