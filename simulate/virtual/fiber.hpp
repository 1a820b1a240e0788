// SPDX-License-Identifier: Apache-2.0
// Many threads of control in one thread: a task of the engine runs as it is, and where it would wait for storage
// another one goes on. Changing from one to another saves registers only (setjmp and longjmp after the first entry, as
// GNU Pth does): no system call, a few nanoseconds.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>

namespace sonde::simulate {

class Fiber {
 public:
    /// `body` runs on `stack` from the first resume() on and must not throw.
    Fiber(std::span<std::byte> stack, std::function<void()> body);
    ~Fiber();
    Fiber(const Fiber&) = delete;
    Fiber& operator=(const Fiber&) = delete;

    /// Goes on where it was, and returns when it pauses or ends.
    void resume();
    /// Of the fiber that runs: back to whoever resumed it.
    void pause();
    bool ended() const noexcept { return ended_; }

 private:
    static void enter();

    struct Contexts;
    std::span<std::byte> stack_;
    std::function<void()> body_;
    std::unique_ptr<Contexts> contexts_;
    bool begun_ = false, ended_ = false;
};

/// Memory for the stacks of many fibers: only pages that are used are taken.
class Stacks {
 public:
    explicit Stacks(std::size_t count);
    ~Stacks();
    Stacks(const Stacks&) = delete;
    Stacks& operator=(const Stacks&) = delete;
    std::span<std::byte> at(std::size_t index) const;

 private:
    static constexpr std::size_t each = 64U << 10U;
    std::byte* memory_;
    std::size_t size_;
};

}  // namespace sonde::simulate
