// SPDX-License-Identifier: Apache-2.0
// Agreement of the tasks that have one file open together. Syncing and closing such a file takes all of them, but a
// failed task closes the file at once. So they first ask each other, and no task enters a call that others do
// not.
#pragma once

#include "ranks/mpi_interface.hpp"

#include <cerrno>

namespace sonde::backends {

class MemberVotes {
 public:
    /// `is_common`: all tasks open the file together; otherwise a task votes with itself.
    MemberVotes(const SondeMpiModule& mpi, bool is_common) : mpi_(mpi), is_common_(is_common) {}

    bool is_common() const noexcept { return is_common_; }
    /// Whether any task says yes: 0, 1 or -errno.
    int any_yes(bool yes) const noexcept { return is_common_ ? mpi_.any(yes ? 1 : 0) : static_cast<int>(yes); }

    /// 0: all tasks sync now. -ECANCELED: another one closes. Other -errno: MPI is broken.
    int begin_sync() const noexcept {
        if (is_common_ && mpi_.any(0) != 0) {
            mpi_.any(1);
            return -ECANCELED;
        }
        return 0;
    }

    /// Waits until all tasks close. 0 or -errno.
    int begin_close() const noexcept {
        int others = is_common_ ? 1 : 0;
        while (others > 0) {
            if (const int closing = mpi_.any(1); closing < 0) {
                return closing;
            }
            others = mpi_.any(0);
        }
        return others;
    }

 private:
    const SondeMpiModule& mpi_;
    bool is_common_;
};

}  // namespace sonde::backends
