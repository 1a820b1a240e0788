// SPDX-License-Identifier: Apache-2.0
// Releases the lock of a file during a storage call or a wait. The lock is held before and after.
#pragma once

#include "model/file.hpp"

namespace sonde::buffer {

/// Stands around every call of the layer below, up to end(): the lock of the file is given back, the thread cannot be
/// canceled while it owns things, errno of the program is kept, and the time is counted.
class UnlockedScope {
 public:
    UnlockedScope(File& file, std::uint64_t* waited) noexcept;
    UnlockedScope(const UnlockedScope&) = delete;
    UnlockedScope& operator=(const UnlockedScope&) = delete;
    std::uint64_t elapsed_ns = 0;  ///< after end()
    void end() noexcept;           ///< once, before the object goes

 private:
    File& file_;
    std::uint64_t* wait_counter_;
    std::uint64_t began_;
    int cancel_ = 0;
    int errno_;
};
/// Waits for a change of the file; the time counts as waiting.
void wait_for_change(File& file) noexcept;

}  // namespace sonde::buffer
