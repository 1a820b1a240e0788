// SPDX-License-Identifier: Apache-2.0
// Descriptors whose files may be buffered once they have had enough calls. Most files have only a few calls: opening
// one costs one store, and each of its first calls one comparison and exchange. What the file is (its inode, its rule,
// its file system) is looked up when its calls are worth it.
#pragma once

#include "model/candidate_table.hpp"

namespace sonde::buffer {

enum class CallRoute : unsigned char {
    Pass,    ///< make the real call
    Time,    ///< make the real call and pass its duration to record_candidate_call_time()
    Buffer,  ///< the descriptor is in the table now
};
/// Counts one read or write of a candidate and says what to do with it. Requires counts_calls(fd).
CallRoute count_candidate_call(int fd) noexcept;
void record_candidate_call_time(int fd, std::size_t bytes, std::uint64_t ns) noexcept;
/// Adopts the descriptor when it is not known and may lead to a file that is buffered without a lease.
void consider_unseen_descriptor(int fd) noexcept;

/// `fd` has just been opened with `flags` as `path`. With a `reason` its file is not buffered.
void consider_opened_descriptor(int fd, int flags, const char* path, const char* reason = nullptr) noexcept;
/// Must be called after dup(): gives `duplicate` the state of the candidate `fd`.
void duplicate_candidate(int fd, int duplicate) noexcept;
}  // namespace sonde::buffer
