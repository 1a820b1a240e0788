// SPDX-License-Identifier: Apache-2.0
// Live progress without disturbing the tasks: a separate process (not a thread: a second thread would make every system
// call of a single-threaded task slower) reads the counters in shared memory and writes progress lines to the record.
// It also notices when the engine dies without a word, and says so in the record.
#pragma once

#include "phases/board.hpp"
#include "ranks/team.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace sonde::runs {

class Monitor {
 public:
    /// Forks the monitor process; `phase_ids` by number. interval_ns = 0: it writes no progress, only
    /// the end of an engine that was killed.
    Monitor(phases::Board& board, ranks::Team& team, const std::string& record, std::int64_t epoch_ns,
            std::int64_t interval_ns, const std::vector<std::string>& phase_ids);
    ~Monitor();  ///< ends it and waits for it
    Monitor(const Monitor&) = delete;
    Monitor& operator=(const Monitor&) = delete;

 private:
    int pid_ = -1;
    int pipe_ = -1;
};

}  // namespace sonde::runs
