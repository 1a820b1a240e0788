// SPDX-License-Identifier: Apache-2.0
// What a site's own program (`beegfs-ctl`, `mmlsattr`) says about a file.
#pragma once

#include <spawn.h>
#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace sonde::records {

struct ProgramOutput {
    int code = -1;      ///< exit code; -1 when it could not be started or was ended by a signal
    std::string text;   ///< standard output and error; why it could not be started, or was ended
    bool late = false;  ///< it took longer than it may and was ended
    bool ok() const { return code == 0; }
    std::string first_line() const;
    /// The last one that is not empty: programs write remarks first and why they failed at the end.
    std::string last_line() const;
};

/// "`mmlsdisk`: why": which command failed, and what it said of that, also when that is nothing.
std::string why_failed(const std::string& command, const std::string& said);

/// A program starts with the signals that it expects: none blocked, all with their default, though the engine may block
/// or ignore some. The flags that posix_spawnattr_setflags() needs for it.
short default_signals(posix_spawnattr_t& attributes);

/// Tools of a file system ask its servers, and wait for ever when one of these does not answer.
constexpr std::chrono::milliseconds longest_wait{10'000};

/// Runs a program that is looked for in PATH, without a shell and with standard input at /dev/null, and waits for it.
/// Of what it prints the first `most` bytes are kept. One that takes longer than `limit` is killed with all that it
/// started, as far as they stay in its process group.
ProgramOutput output_of(const std::vector<std::string>& arguments, std::size_t most = 262144,
                        std::chrono::milliseconds limit = longest_wait);

}  // namespace sonde::records
