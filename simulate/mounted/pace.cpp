// SPDX-License-Identifier: Apache-2.0
#include "mounted/pace.hpp"

#include <algorithm>

namespace sonde::simulate {
namespace {

constexpr Time longest_sleep = 3'600'000'000'000;

}  // namespace

Pace::Pace(SiteModel site, const Options& options)
    : options_(options), start_(Clock::now()), machine_(std::move(site), options.machine, *this) {
    options_.lead = static_cast<Time>(static_cast<double>(options.lead) * options.speed);
    waiting_.reserve(1024);
}

Pace::Call::Call(Pace& pace, Operation operation) : pace_(pace) {
    if (pace_.options_.paced) {
        pace_.begin(*this, operation);
    }
}

void Pace::Call::wait() {
    if (pace_.options_.paced) {
        pace_.finish(*this);
    }
}

Time Pace::now() const {
    const auto passed = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start_).count();
    return options_.speed == 1 ? passed : static_cast<Time>(static_cast<double>(passed) * options_.speed);
}

Pace::Clock::time_point Pace::real(Time at) const {
    return start_ + std::chrono::nanoseconds(
                        options_.speed == 1 ? at : static_cast<Time>(static_cast<double>(at) / options_.speed));
}

/// Events up to a lead from now. The machine's clock stands at the last of them, so that a call that comes next is not
/// put off to the end of the lead.
void Pace::settle() {
    const Time until = now() + options_.lead;
    while (machine_.next() <= until) {
        machine_.step();
    }
}

void Pace::begin(Call& call, Operation operation) {
    operation.tag = reinterpret_cast<std::uintptr_t>(&call);
    const std::lock_guard lock(mutex_);
    settle();
    call.done_ = false;
    machine_.submit(std::max(now(), machine_.now()), operation);
    settle();
    if (leader_ != nullptr && machine_.next() < armed_) {
        leader_->wake_.notify_one();  // it sleeps too long
    }
}

void Pace::finish(Call& call) {
    std::unique_lock lock(mutex_);
    if (call.done_) {
        return;
    }
    call.place_ = waiting_.size();
    waiting_.push_back(&call);
    while (!call.done_) {
        if (leader_ != nullptr) {
            call.wake_.wait(lock);
            continue;
        }
        leader_ = &call;
        armed_ = std::min(machine_.next(), now() + longest_sleep);
        call.wake_.wait_until(lock, real(armed_ - options_.lead));
        leader_ = nullptr;
        settle();
    }
    waiting_.back()->place_ = call.place_;
    waiting_[call.place_] = waiting_.back();
    waiting_.pop_back();
    call.place_ = Call::absent;
    if (leader_ == nullptr && !waiting_.empty()) {
        waiting_.front()->wake_.notify_one();  // somebody has to look at the clock
    }
}

void Pace::done(const Done& what) {
    // The tag is the address that was put there.
    Call& call = *reinterpret_cast<Call*>(static_cast<std::uintptr_t>(what.tag));
    call.done_ = true;
    if (call.place_ != Call::absent) {
        call.wake_.notify_one();
    }
}

}  // namespace sonde::simulate
