// SPDX-License-Identifier: Apache-2.0
// Live progress without disturbing the tasks: a separate process reads the counters in shared memory and writes
// `progress` lines to the record. It is a process because a second thread slows down every system call of a
// single-threaded task. It also writes the `end` line when the engine is killed.
#pragma once

#include "files/record_file.hpp"
#include "phases/board.hpp"
#include "ranks/team.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace sonde::runs {

class Monitor {
 public:
    /// Forks the monitor process. `phase_ids` are indexed by phase. interval_ns = 0: no progress lines, only the end of
    /// a killed engine.
    Monitor(phases::ProgressBoard& board, ranks::Team& team, const files::RecordFile& record, std::int64_t epoch_ns,
            std::int64_t interval_ns, const std::vector<std::string>& phase_ids);
    ~Monitor();  ///< ends it and waits for it
    Monitor(const Monitor&) = delete;
    Monitor& operator=(const Monitor&) = delete;

 private:
    int pid_ = -1;
    int pipe_ = -1;
};

}  // namespace sonde::runs
