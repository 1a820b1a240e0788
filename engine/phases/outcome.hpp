// SPDX-License-Identifier: Apache-2.0
// Outcome and exit code of a run.
#pragma once

#include <string>

namespace sonde::phases {

/// Common to engine, lab and preload.
enum ExitCode : int {
    exit_done = 0,
    exit_failed = 1,       ///< a measurement failed
    exit_plan = 2,         ///< a wrong plan or wrong arguments
    exit_environment = 3,  ///< the machine does not allow it
    exit_mismatch = 4,     ///< verification found a mismatch
    exit_interrupted = 5
};

/// Outcome of a run; the first error is kept.
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
