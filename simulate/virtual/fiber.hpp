// SPDX-License-Identifier: Apache-2.0
// Several threads of control in one thread: where a task of the engine would wait for storage, another task runs.
// A switch saves registers only (setjmp and longjmp after the first entry, as GNU Pth does): no system call, a few
// nanoseconds.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>

namespace sonde::simulate {

/// Saved registers of a fiber and of its caller.
struct FiberContexts;

class Fiber {
 public:
    /// `body` runs on `stack` from the first resume() on. It must not throw.
    Fiber(std::span<std::byte> stack, std::function<void()> body);
    ~Fiber();
    Fiber(const Fiber&) = delete;
    Fiber& operator=(const Fiber&) = delete;

    /// Runs the body from where it paused. Returns when it pauses or ends.
    void resume();
    /// Called by the running fiber: returns to the caller of resume().
    void pause();
    bool has_ended() const noexcept { return has_ended_; }

 private:
    static void run_body();

    std::span<std::byte> stack_;
    std::function<void()> body_;
    std::unique_ptr<FiberContexts> contexts_;
    bool has_begun_ = false, has_ended_ = false;
};

/// Memory for the stacks of many fibers. Only touched pages occupy memory.
class FiberStacks {
 public:
    explicit FiberStacks(std::size_t count);
    ~FiberStacks();
    FiberStacks(const FiberStacks&) = delete;
    FiberStacks& operator=(const FiberStacks&) = delete;
    std::span<std::byte> stack(std::size_t index) const;

 private:
    static constexpr std::size_t stack_bytes = 64U << 10U;
    std::byte* memory_;
    std::size_t bytes_;
};

}  // namespace sonde::simulate
