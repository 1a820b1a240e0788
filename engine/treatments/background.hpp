// SPDX-License-Identifier: Apache-2.0
// Long calls into the kernel that cannot be interrupted, such as a sync of a whole file system.
#pragma once

#include <functional>

namespace sonde::treatments {

/// Runs `work` in a thread of its own and waits for it, asking `stop` (may be null) every 50 ms. False when `stop` came
/// first: then the thread is left to itself, so `work` must own everything it uses.
bool run_or_leave(std::function<void()> work, bool (*stop)());

/// Sleeps; false when `stop` (may be null) ended it early.
bool sleep_or_stop(double seconds, bool (*stop)());

}  // namespace sonde::treatments
