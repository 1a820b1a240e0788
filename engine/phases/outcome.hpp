// SPDX-License-Identifier: Apache-2.0
// What a run has come to, and the exit code that says so.
#pragma once

#include <string>

namespace sonde::phases {

/// The same in the whole of Sonde: engine, lab and preload.
enum ExitCode : int {
    exit_done = 0,
    exit_failed = 1,       ///< a measurement failed
    exit_plan = 2,         ///< a wrong plan or wrong arguments
    exit_environment = 3,  ///< the machine does not allow it
    exit_mismatch = 4,     ///< verification found other bytes than were written
    exit_interrupted = 5
};

/// What the run has come to; the first serious thing wins.
struct Outcome {
    int code = exit_done;
    std::string text;  ///< one sentence, for people

    void set(int new_code, const std::string& sentence) {
        if (code == exit_done) {
            code = new_code;
            text = sentence;
        }
    }
    /// As in the record's `end` line.
    const char* status() const {
        return code == exit_done          ? "done"
               : code == exit_mismatch    ? "mismatch"
               : code == exit_interrupted ? "interrupted"
                                          : "failed";
    }
};

}  // namespace sonde::phases
