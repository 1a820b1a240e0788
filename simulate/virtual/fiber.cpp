// SPDX-License-Identifier: Apache-2.0
#include "virtual/fiber.hpp"

#include <csetjmp>
#include <new>

#include <sys/mman.h>
#include <ucontext.h>

namespace sonde::simulate {
namespace {

/// makecontext() hands over nothing wider than an int.
Fiber* entering = nullptr;

}  // namespace

struct Fiber::Contexts {
    ucontext_t start{}, caller{};
    jmp_buf inside{}, outside{};
};

Fiber::Fiber(std::span<std::byte> stack, std::function<void()> body)
    : stack_(stack), body_(std::move(body)), contexts_(std::make_unique<Contexts>()) {
}

Fiber::~Fiber() = default;

void Fiber::enter() {
    Fiber* const self = entering;
    self->body_();
    self->ended_ = true;
    _longjmp(self->contexts_->outside, 1);
}

void Fiber::resume() {
    if (_setjmp(contexts_->outside) != 0) {
        return;
    }
    if (begun_) {
        _longjmp(contexts_->inside, 1);
    }
    begun_ = true;
    entering = this;
    getcontext(&contexts_->start);
    contexts_->start.uc_stack.ss_sp = stack_.data();
    contexts_->start.uc_stack.ss_size = stack_.size();
    contexts_->start.uc_link = nullptr;
    makecontext(&contexts_->start, &Fiber::enter, 0);
    swapcontext(&contexts_->caller, &contexts_->start);
}

void Fiber::pause() {
    if (_setjmp(contexts_->inside) == 0) {
        _longjmp(contexts_->outside, 1);
    }
}

Stacks::Stacks(std::size_t count) : size_(count * each) {
    void* memory = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        throw std::bad_alloc();
    }
    memory_ = static_cast<std::byte*>(memory);
}

Stacks::~Stacks() {
    munmap(memory_, size_);
}

std::span<std::byte> Stacks::at(std::size_t index) const {
    return {memory_ + index * each, each};
}

}  // namespace sonde::simulate
