// SPDX-License-Identifier: Apache-2.0
#include "workloads/buffers.hpp"

#include <sys/mman.h>
#include <cstring>
#include <stdexcept>
#include <string>

namespace sonde::workloads {
namespace {

constexpr std::uint64_t page = 4096;
std::uint64_t round_up(std::uint64_t bytes) {
    return (bytes + page - 1) / page * page;
}

}  // namespace

Buffers::Buffers(std::size_t slots, const payload::Base& base, std::uint64_t max_length, bool writes, bool reads,
                 bool verify) {
    const std::uint64_t image = payload::Image::memory_for(base.period(), max_length);
    const std::uint64_t write_part = writes ? image : 0;
    const std::uint64_t read_part = reads ? round_up(max_length) : 0;
    const std::uint64_t area = write_part + read_part;
    read_offset_ = write_part;
    size_ = area * slots + (verify ? image : 0);
    void* memory = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        throw std::runtime_error("not enough memory for the buffers of one task (" + std::to_string(size_) +
                                 " bytes): use a smaller transfer or queue_depth");
    }
    memory_ = static_cast<std::byte*>(memory);
    for (std::size_t slot = 0; slot < slots; ++slot) {
        std::byte* start = memory_ + slot * area;
        areas_.emplace_back(start, area);
        if (writes) {
            images_.emplace_back(base, start, max_length);
        }
        if (reads) {
            std::memset(start + read_offset_, 0x5a, read_part);  // touched now, not in the timed loop
        }
    }
    if (verify) {
        expected_.emplace_back(base, memory_ + slots * area, max_length);
    }
}

Buffers::~Buffers() {
    if (memory_ != nullptr) {
        munmap(memory_, size_);
    }
}

void Buffers::set_origin(const payload::Origin& origin) noexcept {
    for (payload::Image& image : images_) {
        image.set_origin(origin);
    }
}

}  // namespace sonde::workloads
