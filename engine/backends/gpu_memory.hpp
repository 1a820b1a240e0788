// SPDX-License-Identifier: Apache-2.0
// The memory of a GPU behind a task's buffers.
#pragma once

#include "backends/cuda_library.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sonde::backends {

/// Mirrors of a task's buffer areas in the memory of one GPU, and the copies between them.
class GpuMemory {
 public:
    /// Takes GPU io.gpus[t mod their number] for task t. Throws std::runtime_error with one sentence.
    explicit GpuMemory(const ChannelSetup& setup);
    ~GpuMemory();
    GpuMemory(const GpuMemory&) = delete;
    GpuMemory& operator=(const GpuMemory&) = delete;

    /// Begins to copy the bytes at `host`, which lie in the area of `slot`. False: an error, in words in
    /// last_error_text().
    bool begin_upload(std::uint32_t slot, const std::byte* host, std::uint64_t bytes) noexcept {
        return check(cuda_.MemcpyHtoDAsync(find_device_buffer(slot, host), host, bytes, stream_));
    }
    bool begin_download(std::uint32_t slot, std::byte* host, std::uint64_t bytes) noexcept {
        return check(cuda_.MemcpyDtoHAsync(host, find_device_buffer(slot, host), bytes, stream_));
    }
    /// The thread that made the channel need not be the one that uses it.
    bool enter_thread() noexcept { return check(cuda_.CtxSetCurrent(context_)); }
    bool upload_areas() noexcept {
        bool is_good = true;
        for (std::uint32_t slot = 0; slot < areas_.size(); ++slot) {
            is_good = is_good && begin_upload(slot, areas_[slot].data(), areas_[slot].size());
        }
        return is_good && wait();
    }
    bool wait() noexcept { return check(cuda_.StreamSynchronize(stream_)); }

    /// Address of the mirror of an area, for libraries that access it themselves.
    CudaAddress device_buffer(std::uint32_t slot) const noexcept { return device_buffers_[slot]; }
    std::span<const std::span<std::byte>> areas() const noexcept { return areas_; }

    const char* explanation() const noexcept { return explanation_; }
    bool is_pinned() const { return is_pinned_; }

 private:
    CudaAddress find_device_buffer(std::uint32_t slot, const std::byte* host) const noexcept {
        return device_buffers_[slot] + static_cast<CudaAddress>(host - areas_[slot].data());
    }
    bool check(int result) noexcept {
        if (result == cuda_success) [[likely]] {
            return true;
        }
        cuda_.GetErrorString(result, &explanation_);
        return false;
    }
    void require(int result, const char* action) const;
    void release() noexcept;

    const CudaFunctions& cuda_;
    std::span<const std::span<std::byte>> areas_;
    int gpu_, device_ = -1;
    CudaContext context_ = nullptr;
    CudaStream stream_ = nullptr;
    std::vector<CudaAddress> device_buffers_;
    std::vector<void*> pinned_;
    bool is_pinned_ = true;
    const char* explanation_ = "";
};

}  // namespace sonde::backends
