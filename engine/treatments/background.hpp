// SPDX-License-Identifier: Apache-2.0
// Long calls into the kernel that cannot be interrupted, such as a sync of a whole file system.
#pragma once

#include <functional>

namespace sonde::treatments {

/// True when the run is to end. May be empty: nobody asks.
using StopAsked = std::function<bool()>;

/// Runs `work` in a thread of its own and waits for it, asking `stop` every 50 ms. False when `stop` came
/// first: then the thread is left to itself, so `work` must own everything it uses.
bool run_or_leave(std::function<void()> work, const StopAsked& stop);

/// Sleeps; false when `stop` ended it early.
bool sleep_or_stop(double seconds, const StopAsked& stop);

}  // namespace sonde::treatments
