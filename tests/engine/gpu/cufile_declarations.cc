// SPDX-License-Identifier: Apache-2.0
// Compared by the compiler: the engine's declarations of cuFile and the real header. Nothing here runs.
#include "../same_call.hpp"
#include "backends/cufile_library.hpp"

#include <cufile.h>
#include <cstddef>
#include <string_view>

namespace {

using namespace sonde::backends;

#define COMPARE(name) \
    static_assert(Comparison<decltype(CuFileFunctions::name), decltype(&cuFile##name)>::is_same, #name)
COMPARE(DriverOpen);
COMPARE(HandleRegister);
COMPARE(HandleDeregister);
COMPARE(BufRegister);
COMPARE(BufDeregister);
COMPARE(Read);
COMPARE(Write);
static_assert(offsetof(CuFileError, cuda_status) == offsetof(CUfileError_t, cu_err));
static_assert(offsetof(CuFileDescription, descriptor) == offsetof(CUfileDescr_t, handle));
static_assert(offsetof(CuFileDescription, operations) == offsetof(CUfileDescr_t, fs_ops));
static_assert(sizeof(CuFileDescription) == sizeof(CUfileDescr_t));
static_assert(cufile_opaque_descriptor == CU_FILE_HANDLE_TYPE_OPAQUE_FD);
static_assert(CU_FILE_SUCCESS == 0 && CU_FILE_DRIVER_NOT_INITIALIZED == 5001 &&
              CU_FILE_PLATFORM_NOT_SUPPORTED == 5007 && CU_FILE_IO_NOT_SUPPORTED == 5008 &&
              CU_FILE_DEVICE_NOT_SUPPORTED == 5009 && CU_FILE_INVALID_FILE_TYPE == 5018 &&
              CU_FILE_INVALID_FILE_OPEN_FLAG == 5019 && CU_FILE_DIO_NOT_SET == 5020 &&
              CU_FILE_DRIVER_ALREADY_OPEN == 5026 && CU_FILE_IO_DISABLED == 5034);

}  // namespace
