// SPDX-License-Identifier: Apache-2.0
// A stream's memory: one area per queue slot, page aligned, so that direct I/O and registered buffers can use it.
#pragma once

#include "payload/payload.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace sonde::workloads {

class Buffers {
 public:
    /// Memory of a task: `slots` areas. An area for writes holds a payload image; one for reads holds the
    /// longest operation. To verify takes one image more.
    struct Setup {
        std::size_t slots = 1;
        std::uint64_t max_length = 0;  ///< bytes of the longest operation
        bool writes = false, reads = false, verify = false;
        int tasks = 1;                     ///< with as much memory on this node
        std::span<std::byte> shared = {};  ///< given memory of at least that size, instead of its own

        /// Bytes of one task.
        std::uint64_t compute_bytes_per_task(std::uint64_t period) const;
    };
    Buffers(const payload::PayloadBase& base, const Setup& needs);
    ~Buffers();
    Buffers(const Buffers&) = delete;
    Buffers& operator=(const Buffers&) = delete;

    std::span<const std::span<std::byte>> areas() const noexcept { return areas_; }
    std::byte* read_buffer(std::size_t slot) noexcept { return areas_[slot].data() + read_offset_; }
    payload::PayloadImage& image(std::size_t slot) noexcept { return images_[slot]; }
    /// The image that reads are compared with; only with verify.
    payload::PayloadImage& expected() noexcept { return expected_.front(); }
    void set_origin(const payload::Origin& origin) noexcept;

 private:
    std::byte* memory_ = nullptr;
    std::size_t size_ = 0;
    bool shared_ = false;
    std::uint64_t read_offset_ = 0;
    std::vector<std::span<std::byte>> areas_;
    std::vector<payload::PayloadImage> images_;
    std::vector<payload::PayloadImage> expected_;
};

}  // namespace sonde::workloads
