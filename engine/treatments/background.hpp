// SPDX-License-Identifier: Apache-2.0
// Runs uninterruptible system calls, such as a sync of a file system, in a thread.
#pragma once

#include <functional>

namespace sonde::treatments {

/// Returns true when the run must end. May be empty.
using StopPredicate = std::function<bool()>;

/// Runs `work` in a new thread and waits for it, polling `stop` every 50 ms. Returns false when `stop` came first: then
/// the thread is detached, so `work` must own everything that it uses.
bool run_until_stopped(std::function<void()> work, const StopPredicate& stop);

/// Sleeps. Returns false when `stop` ended it early.
bool sleep_until_stopped(double seconds, const StopPredicate& stop);

}  // namespace sonde::treatments
