// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda_library.hpp"

#include "backends/runtime_library.hpp"

#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

namespace sonde::backends {
namespace {

constexpr RuntimeLibrary cuda_driver{.title = "the driver of NVIDIA GPUs",
                                     .variable = "SONDE_CUDA_LIBRARY",
                                     .file = "libcuda.so.1",
                                     .remedy = "install it, leave out io.gpus",
                                     .version = "the driver of CUDA 11 or later"};

CudaFunctions bind_cuda() {
    CudaFunctions f;
    // The names with _v2 are what cuda.h makes of those without.
    bind_library(cuda_driver, {
                                  {"cuInit", &f.Init},
                                  {"cuGetErrorString", &f.GetErrorString},
                                  {"cuDeviceGetCount", &f.DeviceGetCount},
                                  {"cuDeviceGet", &f.DeviceGet},
                                  {"cuDevicePrimaryCtxRetain", &f.DevicePrimaryCtxRetain},
                                  {"cuDevicePrimaryCtxRelease_v2", &f.DevicePrimaryCtxRelease},
                                  {"cuCtxSetCurrent", &f.CtxSetCurrent},
                                  {"cuMemAlloc_v2", &f.MemAlloc},
                                  {"cuMemFree_v2", &f.MemFree},
                                  {"cuMemHostRegister_v2", &f.MemHostRegister},
                                  {"cuMemHostUnregister", &f.MemHostUnregister},
                                  {"cuMemcpyHtoDAsync_v2", &f.MemcpyHtoDAsync},
                                  {"cuMemcpyDtoHAsync_v2", &f.MemcpyDtoHAsync},
                                  {"cuStreamCreate", &f.StreamCreate},
                                  {"cuStreamDestroy_v2", &f.StreamDestroy},
                                  {"cuStreamSynchronize", &f.StreamSynchronize},
                              });
    return f;
}

/// The driver's report about this machine.
struct DriverReport {
    int gpus = 0;         ///< GPUs that it counts
    std::string problem;  ///< why it cannot be used: one sentence; empty when it can
};

/// Initializes the driver in this process.
DriverReport query_driver() {
    const CudaFunctions& cuda = load_cuda();
    DriverReport report;
    // load_cuda() has set all pointers. NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage)
    int result = cuda.Init(0);
    if (result == cuda_success) {
        result = cuda.DeviceGetCount(&report.gpus);
    }
    if (result != cuda_success) {
        report.problem = "the driver of NVIDIA GPUs cannot be used (" + describe_cuda_error(cuda, result) +
                         "): check it with nvidia-smi, or leave out io.gpus";
    }
    return report;
}

/// Writes the report to a pipe, as the number of GPUs or the problem, and ends the process: code 0 or 1.
[[noreturn]] void report_and_exit(int pipe_end) {
    DriverReport report;
    try {
        report = query_driver();
    } catch (const std::exception& error) {
        report.problem = error.what();
    }
    const std::string text = report.problem.empty() ? std::to_string(report.gpus) : report.problem;
    const bool is_written = write(pipe_end, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    _exit(report.problem.empty() && is_written ? 0 : 1);
}

/// Queries the driver in a separate process.
DriverReport query_driver_in_child() {
    std::array<int, 2> ends{};
    if (pipe(ends.data()) != 0) {
        return {.gpus = 0, .problem = std::string("no pipe can be made: ") + std::strerror(errno)};
    }
    const pid_t child = fork();
    if (child == 0) {
        report_and_exit(ends[1]);
    }
    close(ends[1]);
    std::string text;
    std::array<char, 1024> buffer{};
    for (ssize_t count = 0; child > 0 && (count = read(ends[0], buffer.data(), buffer.size())) > 0;) {
        text.append(buffer.data(), static_cast<std::size_t>(count));
    }
    close(ends[0]);
    int status = 0;
    const bool is_ended = child > 0 && waitpid(child, &status, 0) == child;
    if (is_ended && WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        return {.gpus = static_cast<int>(std::strtol(text.c_str(), nullptr, 10)), .problem = ""};
    }
    return {.gpus = 0,
            .problem = !text.empty() ? text : "the driver of NVIDIA GPUs ends the program: check it with nvidia-smi"};
}

}  // namespace

const CudaFunctions& load_cuda() {
    static const CudaFunctions cuda = bind_cuda();
    return cuda;
}

std::string describe_cuda_error(const CudaFunctions& cuda, int result) {
    const char* text = nullptr;
    return cuda.GetErrorString(result, &text) == cuda_success && text != nullptr ? text
                                                                                 : "error " + std::to_string(result);
}

Availability find_gpus(const std::vector<int>& gpus) {
    static const DriverReport report = query_driver_in_child();
    if (!report.problem.empty()) {
        return {.is_available = false, .reason = report.problem};
    }
    const int count = report.gpus;
    const auto missing = std::find_if(gpus.begin(), gpus.end(), [count](int gpu) { return gpu >= count; });
    if (missing == gpus.end()) {
        return {};
    }
    return {.is_available = false,
            .reason = "io.gpus names GPU " + std::to_string(*missing) + ", but " +
                      (count == 0   ? "there is none here: leave it out"
                       : count == 1 ? "the only one here is 0"
                                    : "those here are 0 to " + std::to_string(count - 1))};
}

}  // namespace sonde::backends
