// SPDX-License-Identifier: Apache-2.0
// Parts of our work that must not be interrupted by a handler of the program: it may call write() on the very file
// whose lock we hold, or leave by longjmp. Blocking signals would cost two system calls each time; instead a signal
// that arrives here is put off (intercept/signals.cpp) until the outermost Critical of the thread ends.
#pragma once

namespace sonde::system {

struct ThreadState {
    int depth = 0;
    bool has_deferred_signal = false;
};
extern constinit thread_local ThreadState thread_state __attribute__((tls_model("initial-exec")));
/// Function that delivers deferred signals; set by the code that defers them.
extern void (*deliver_signals)();

class Critical {
 public:
    Critical() noexcept {
        ++thread_state.depth;
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
    }
    ~Critical() {
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        if (--thread_state.depth == 0 && thread_state.has_deferred_signal) [[unlikely]] {
            deliver_signals();
        }
    }
    Critical(const Critical&) = delete;
    Critical& operator=(const Critical&) = delete;
    /// Returns whether this thread is already in the library: called by libc, or by a handler that could not be
    /// deferred.
    static bool is_in_library() noexcept { return thread_state.depth > 0; }
};

}  // namespace sonde::system
