// SPDX-License-Identifier: Apache-2.0
#include "files/own_descriptors.hpp"

#include "files/direct_descriptors.hpp"
#include "files/processes.hpp"
#include "guards/node_locks.hpp"
#include "model/registry.hpp"
#include "model/state.hpp"
#include "model/table.hpp"
#include "modes/modes.hpp"
#include "system/high_descriptor.hpp"

namespace sonde::buffer {

bool release_own_descriptor() noexcept {
    const system::Critical critical;
    const int before = count_direct_descriptors();
    if (before > 0) {
        system::LockGuard lock_guard(state.files_lock);
        for_each_file([](File& file) {
            if (!file.has_posix_locks) {  // with any close() of a file the program's locks on it go away
                close_gate(file);
                close_direct_descriptors_of(file);
                open_gate(file);
            }
        });
    }
    if (count_direct_descriptors() < before) {
        return true;
    }
    disable_buffering("the program uses all descriptors that it may have");
    return close_node_locks();
}

void move_own_descriptor(int fd) noexcept {
    const system::Critical critical;
    const long duplicate = system::duplicate_to_high_descriptor(static_cast<int>(fd));
    if (duplicate < 0) {
        return;
    }
    static int from;  // under the lock of all files
    static int to;
    system::LockGuard lock_guard(state.files_lock);
    from = fd;
    to = static_cast<int>(duplicate);
    state.report_fd = state.report_fd == from ? to : state.report_fd;
    state.json_report_fd = state.json_report_fd == from ? to : state.json_report_fd;
    record_moved_lock_file(from, to);
    for_each_file([](File& file) {
        file.descriptors.direct_read_fd =
            file.descriptors.direct_read_fd == from ? to : file.descriptors.direct_read_fd;
        file.descriptors.direct_write_fd =
            file.descriptors.direct_write_fd == from ? to : file.descriptors.direct_write_fd;
    });
    unmark_own_descriptor(from);
    mark_own_descriptor(to);
}

}  // namespace sonde::buffer
