// SPDX-License-Identifier: Apache-2.0
// The table itself, and which numbers are ours.
#include "buffer/table.hpp"

#include "buffer/state.hpp"

namespace sonde::buffer {

constinit std::atomic<Description*>* table = nullptr;
constinit std::atomic<int> highest{0};

namespace {
constexpr unsigned private_count = 4096;
constinit std::atomic<std::uint64_t> privates[private_count / 64] = {};
}  // namespace

bool any() noexcept {
    return state.files_known.load(std::memory_order_relaxed) != 0;
}

int highest_descriptor() noexcept {
    return highest.load(std::memory_order_relaxed);
}

bool is_private(int fd) noexcept {
    const auto at = static_cast<unsigned>(fd);
    return at < private_count && (privates[at / 64].load(std::memory_order_relaxed) >> (at % 64) & 1U) != 0;
}

void note_private(int fd, bool open) noexcept {
    const auto at = static_cast<unsigned>(fd);
    if (at < private_count) {
        const std::uint64_t bit = 1ULL << (at % 64);
        open ? privates[at / 64].fetch_or(bit) : privates[at / 64].fetch_and(~bit);
    }
}

}  // namespace sonde::buffer
