// SPDX-License-Identifier: Apache-2.0
// Compared by the compiler: the engine's declarations of the driver of NVIDIA GPUs and the real header. Nothing here
// runs.
#include "../same_call.hpp"
#include "backends/cuda_library.hpp"

#include <cuda.h>
#include <string_view>

namespace {

using namespace sonde::backends;

#define TEXT(name) #name
#define EXPANDED_TEXT(name) TEXT(name)
// The header replaces some names by those with _v2, which are what the engine looks up.
#define COMPARE(name, real, symbol)                                                            \
    static_assert(Comparison<decltype(CudaFunctions::name), decltype(&real)>::is_same, #name); \
    static_assert(std::string_view(EXPANDED_TEXT(real)) == symbol)
COMPARE(Init, cuInit, "cuInit");
COMPARE(GetErrorString, cuGetErrorString, "cuGetErrorString");
COMPARE(DeviceGetCount, cuDeviceGetCount, "cuDeviceGetCount");
COMPARE(DeviceGet, cuDeviceGet, "cuDeviceGet");
COMPARE(DevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain");
COMPARE(CtxSetCurrent, cuCtxSetCurrent, "cuCtxSetCurrent");
COMPARE(MemHostUnregister, cuMemHostUnregister, "cuMemHostUnregister");
COMPARE(StreamCreate, cuStreamCreate, "cuStreamCreate");
COMPARE(StreamSynchronize, cuStreamSynchronize, "cuStreamSynchronize");
COMPARE(DevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2");
COMPARE(MemAlloc, cuMemAlloc, "cuMemAlloc_v2");
COMPARE(MemFree, cuMemFree, "cuMemFree_v2");
COMPARE(MemHostRegister, cuMemHostRegister, "cuMemHostRegister_v2");
COMPARE(MemcpyHtoDAsync, cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2");
COMPARE(MemcpyDtoHAsync, cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2");
COMPARE(StreamDestroy, cuStreamDestroy, "cuStreamDestroy_v2");
static_assert(cuda_success == CUDA_SUCCESS && cuda_host_register_portable == CU_MEMHOSTREGISTER_PORTABLE &&
              cuda_stream_non_blocking == CU_STREAM_NON_BLOCKING);

}  // namespace
