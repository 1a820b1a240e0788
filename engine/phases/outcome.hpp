// SPDX-License-Identifier: Apache-2.0
// What a run has come to, and the exit code that says so.
#pragma once

#include <string>

namespace sonde::phases {

enum ExitCode : int {
    exit_done = 0,
    exit_failed = 1,
    exit_plan = 2,
    exit_environment = 3,
    exit_mismatch = 4,
    exit_interrupted = 5
};

/// What the run has come to; the first serious thing wins.
struct Outcome {
    int code = exit_done;
    std::string status = "done";
    std::string text;  ///< one sentence, for people
    void set(int new_code, const std::string& new_status, const std::string& sentence) {
        if (code == exit_done) {
            code = new_code;
            status = new_status;
            text = sentence;
        }
    }
};

}  // namespace sonde::phases
