// SPDX-License-Identifier: Apache-2.0
#include "intercept/borrowed_memory.hpp"

#include "system/raw.hpp"

namespace sonde::intercept {

constinit std::atomic<bool> vforked{false};

namespace {
long own_pid = 0;
}  // namespace

void record_memory_owner() noexcept {
    own_pid = raw::call(SYS_getpid);
    vforked.store(false, std::memory_order_relaxed);
}

bool is_other_process() noexcept {
    return raw::call(SYS_getpid) != own_pid;
}

}  // namespace sonde::intercept
