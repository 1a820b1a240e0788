// SPDX-License-Identifier: Apache-2.0
#include "workloads/buffers.hpp"

#include <sys/mman.h>
#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

namespace sonde::workloads {
namespace {

using payload::PayloadImage;

constexpr std::uint64_t page = 4096;

std::uint64_t round_up(std::uint64_t bytes) {
    return (bytes + page - 1) / page * page;
}

/// Bytes for writes and reads in each area, and for the expected content that follows all areas.
struct BufferParts {
    BufferParts(const Buffers::Setup& needs, std::uint64_t period)
        : base_storage(PayloadImage::choose_base_storage(period, needs.max_length,
                                                         static_cast<std::uint64_t>(needs.tasks) * needs.slots)),
          // Verification stops the clock, so its copies are in no rate.
          expected_base_storage(PayloadImage::choose_base_storage(period, needs.max_length, total)),
          write(needs.writes ? PayloadImage::memory_for(period, needs.max_length, base_storage) : 0),
          read(needs.reads ? round_up(needs.max_length) : 0),
          expected(needs.verify ? PayloadImage::memory_for(period, needs.max_length, expected_base_storage) : 0) {}
    static constexpr std::uint64_t total = ~0ULL;
    PayloadImage::BaseStorage base_storage, expected_base_storage;
    std::uint64_t write, read, expected;
};

}  // namespace

std::uint64_t Buffers::Setup::compute_bytes_per_task(std::uint64_t period) const {
    const BufferParts parts(*this, period);
    return (parts.write + parts.read) * slots + parts.expected;
}

Buffers::Buffers(const payload::PayloadBase& base, const Setup& needs)
    : size_(std::max<std::uint64_t>(needs.compute_bytes_per_task(base.period()), 1)) {
    const BufferParts parts(needs, base.period());
    const std::uint64_t area = parts.write + parts.read;
    read_offset_ = parts.write;
    shared_ = !needs.shared.empty();
    if (shared_ && needs.shared.size() < size_) {
        throw std::runtime_error("the memory given for buffers is too small");
    }
    void* memory = shared_ ? needs.shared.data()
                           : mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        throw std::runtime_error("not enough memory for the buffers of one task (" + std::to_string(size_) +
                                 " bytes): use a smaller transfer or queue_depth");
    }
    memory_ = static_cast<std::byte*>(memory);
    for (std::size_t slot = 0; slot < needs.slots; ++slot) {
        std::byte* start = memory_ + slot * area;
        areas_.emplace_back(start, area);
        if (needs.writes) {
            images_.emplace_back(base, start, needs.max_length, parts.base_storage);
        }
        if (needs.reads) {
            std::memset(start + read_offset_, 0x5a, parts.read);  // touched now, not in the timed loop
        }
    }
    if (needs.verify) {
        expected_.emplace_back(base, memory_ + needs.slots * area, needs.max_length, parts.expected_base_storage);
    }
}

Buffers::~Buffers() {
    if (memory_ != nullptr && !shared_) {
        munmap(memory_, size_);
    }
}

void Buffers::set_origin(const payload::Origin& origin) noexcept {
    for (payload::PayloadImage& image : images_) {
        image.set_origin(origin);
    }
}

}  // namespace sonde::workloads
