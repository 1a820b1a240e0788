// SPDX-License-Identifier: Apache-2.0
#include "backends/gpu_memory.hpp"

#include <algorithm>
#include <stdexcept>

namespace sonde::backends {

void GpuMemory::require(int result, const char* action) const {
    if (result != cuda_success) {
        throw std::runtime_error("GPU " + std::to_string(gpu_) + " cannot " + action + ": " +
                                 describe_cuda_error(cuda_, result));
    }
}

GpuMemory::GpuMemory(const ChannelSetup& setup)
    : cuda_(load_cuda()),
      areas_(setup.buffer_areas),
      gpu_(setup.io->gpus[static_cast<std::size_t>(std::max(0, setup.task)) % setup.io->gpus.size()]) {
    try {
        require(cuda_.Init(0), "be used");
        int device = -1;
        require(cuda_.DeviceGet(&device, gpu_), "be opened");
        require(cuda_.DevicePrimaryCtxRetain(&context_, device), "be opened");
        device_ = device;
        require(cuda_.CtxSetCurrent(context_), "be opened");
        require(cuda_.StreamCreate(&stream_, cuda_stream_non_blocking), "be opened");
        for (const std::span<std::byte> area : areas_) {
            CudaAddress device_buffer = 0;
            require(cuda_.MemAlloc(&device_buffer, area.size()),
                    "hold the buffers (use a smaller transfer or queue_depth)");
            device_buffers_.push_back(device_buffer);
            if (cuda_.MemHostRegister(area.data(), area.size(), cuda_host_register_portable) == cuda_success) {
                pinned_.push_back(area.data());
            } else {
                is_pinned_ = false;  // copies still work, slower
            }
        }
    } catch (...) {
        release();
        throw;
    }
}

GpuMemory::~GpuMemory() {
    release();
}

void GpuMemory::release() noexcept {
    if (context_ != nullptr) {
        cuda_.CtxSetCurrent(context_);
    }
    for (void* area : pinned_) {
        cuda_.MemHostUnregister(area);
    }
    for (const CudaAddress mirror : device_buffers_) {
        cuda_.MemFree(mirror);
    }
    if (stream_ != nullptr) {
        cuda_.StreamDestroy(stream_);
    }
    if (device_ >= 0) {
        cuda_.DevicePrimaryCtxRelease(device_);
    }
}

}  // namespace sonde::backends
