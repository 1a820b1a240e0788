// SPDX-License-Identifier: Apache-2.0
#include "virtual/fiber.hpp"

#include <csetjmp>
#include <new>

#include <sys/mman.h>
#include <ucontext.h>

namespace sonde::simulate {
namespace {

/// The fiber that begins: makecontext() passes no argument wider than an int.
Fiber* starting_fiber = nullptr;

}  // namespace

struct FiberContexts {
    ucontext_t start{}, caller{};
    jmp_buf fiber_jump{}, caller_jump{};
};

Fiber::Fiber(std::span<std::byte> stack, std::function<void()> body)
    : stack_(stack), body_(std::move(body)), contexts_(std::make_unique<FiberContexts>()) {
}

Fiber::~Fiber() = default;

void Fiber::run_body() {
    Fiber* const self = starting_fiber;
    self->body_();
    self->has_ended_ = true;
    _longjmp(self->contexts_->caller_jump, 1);
}

void Fiber::resume() {
    if (_setjmp(contexts_->caller_jump) != 0) {
        return;
    }
    if (has_begun_) {
        _longjmp(contexts_->fiber_jump, 1);
    }
    has_begun_ = true;
    starting_fiber = this;
    getcontext(&contexts_->start);
    contexts_->start.uc_stack.ss_sp = stack_.data();
    contexts_->start.uc_stack.ss_size = stack_.size();
    contexts_->start.uc_link = nullptr;
    makecontext(&contexts_->start, &Fiber::run_body, 0);
    swapcontext(&contexts_->caller, &contexts_->start);
}

void Fiber::pause() {
    if (_setjmp(contexts_->fiber_jump) == 0) {
        _longjmp(contexts_->caller_jump, 1);
    }
}

FiberStacks::FiberStacks(std::size_t count) : bytes_(count * stack_bytes) {
    void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        throw std::bad_alloc();
    }
    memory_ = static_cast<std::byte*>(memory);
}

FiberStacks::~FiberStacks() {
    munmap(memory_, bytes_);
}

std::span<std::byte> FiberStacks::stack(std::size_t index) const {
    return {memory_ + index * stack_bytes, stack_bytes};
}

}  // namespace sonde::simulate
