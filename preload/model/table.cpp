// SPDX-License-Identifier: Apache-2.0
// The table of descriptors, and which descriptors belong to the library.
#include "model/table.hpp"

namespace sonde::buffer {

constinit std::atomic<Description*>* table = nullptr;
constinit std::atomic<std::uint32_t> files_known{0};
constinit std::atomic<int> highest{0};
constinit std::atomic<int> lowest_own_descriptor{max_descriptors};

namespace {
constexpr unsigned private_count = 4096;
constinit std::atomic<std::uint64_t> own_descriptor_bits[private_count / 64] = {};
}  // namespace

int get_highest_registered_descriptor() noexcept {
    return highest.load(std::memory_order_relaxed);
}

bool is_own_descriptor(int fd) noexcept {
    const auto number = static_cast<unsigned>(fd);
    return number < private_count &&
           (own_descriptor_bits[number / 64].load(std::memory_order_relaxed) >> (number % 64) & 1U) != 0;
}

void mark_own_descriptor(int fd) noexcept {
    const auto number = static_cast<unsigned>(fd);
    if (number < private_count) {  // -1 is none of them
        int lowest = lowest_own_descriptor.load(std::memory_order_relaxed);
        while (fd < lowest && !lowest_own_descriptor.compare_exchange_weak(lowest, fd, std::memory_order_relaxed)) {
        }
        own_descriptor_bits[number / 64].fetch_or(1ULL << (number % 64));
    }
}

void unmark_own_descriptor(int fd) noexcept {
    const auto number = static_cast<unsigned>(fd);
    if (number < private_count) {
        own_descriptor_bits[number / 64].fetch_and(~(1ULL << (number % 64)));
    }
}

}  // namespace sonde::buffer
