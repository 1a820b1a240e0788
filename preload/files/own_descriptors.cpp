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

bool give_up_own_descriptor() noexcept {
    const system::Critical critical;
    const int before = count_direct();
    if (before > 0) {
        system::Hold lock_guard(state.files_lock);
        for_each_file([](File& file) {
            if (!file.locked_in_parts) {  // with any close() of a file the program's locks on it go away
                close_gate(file);
                remove_direct(file);
                open_gate(file);
            }
        });
    }
    if (count_direct() < before) {
        return true;
    }
    disable_buffering("the program uses all descriptors that it may have");
    return close_node_locks();
}

void move_own_descriptor(int fd) noexcept {
    const system::Critical critical;
    const long duplicate = system::high_duplicate(static_cast<int>(fd));
    if (duplicate < 0) {
        return;
    }
    static int from;  // under the lock of all files
    static int to;
    system::Hold lock_guard(state.files_lock);
    from = fd;
    to = static_cast<int>(duplicate);
    state.report = state.report == from ? to : state.report;
    state.lines = state.lines == from ? to : state.lines;
    note_moved_lock_file(from, to);
    for_each_file([](File& file) {
        file.ends.direct = file.ends.direct == from ? to : file.ends.direct;
        file.ends.direct_out = file.ends.direct_out == from ? to : file.ends.direct_out;
    });
    unmark_own_descriptor(from);
    mark_own_descriptor(to);
}

}  // namespace sonde::buffer
