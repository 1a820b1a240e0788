// SPDX-License-Identifier: Apache-2.0
#include "modes/lease_breaks.hpp"

#include "guards/lease_thread.hpp"
#include "guards/leases.hpp"
#include "model/registry.hpp"
#include "model/state.hpp"
#include "model/table.hpp"
#include "modes/modes.hpp"

namespace sonde::buffer {

namespace {

/// `fd` is the descriptor by which the lease was taken, or -1.
void handle_lease_break(int fd) noexcept {
    if (leases_held.load(std::memory_order_relaxed) == 0) {
        return;
    }
    const system::Critical critical;
    Description* description = nullptr;
    File* file = fd >= 0 && is_registered_descriptor(fd) ? lock_file_of_descriptor(fd, description) : nullptr;
    if (file != nullptr) {
        const bool broken = file->guard == Guard::Lease && is_lease_broken(*file);
        if (broken) {
            release_file(*file, why_opened_elsewhere);
        }
        file->lock.unlock();
        if (broken) {
            return;
        }
    }
    // The number may belong to another file by now, so all leases are checked.
    system::LockGuard lock_guard(state.files_lock);
    for_each_file([](File& each) {
        if (each.guard == Guard::Lease && is_lease_broken(each)) {
            release_file(each, why_opened_elsewhere);
        }
    });
}

}  // namespace

void install_lease_break_handler() noexcept {
    set_lease_break_handler(handle_lease_break);
}

}  // namespace sonde::buffer
