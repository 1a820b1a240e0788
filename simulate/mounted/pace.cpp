// SPDX-License-Identifier: Apache-2.0
#include "mounted/pace.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string_view>

#include <fcntl.h>
#include <unistd.h>

namespace sonde::simulate {
namespace {

constexpr Time longest_sleep = 3'600'000'000'000;
/// Of the clock: what is later than this is not made up for. A computer that stands still so long has been seen to.
constexpr Time longest_delay = 100'000'000;
/// Threads that are remembered; more are a sign of numbers that were given out again.
constexpr std::size_t most_callers = 1U << 16U;
/// By how much patience may shrink.
constexpr Time least_patience = 64;

/// Processor time of this thread.
Time worked() {
    struct timespec time {};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

thread_local Time worked_before = 0;

/// Calls of io_uring that may block are made by threads of the kernel's own, called after the one that they are made
/// for.
pid_t thread_behind(pid_t worker) {
    char path[32];
    std::snprintf(path, sizeof path, "/proc/%d/comm", worker);
    const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
    char name[32] = {};
    // /proc answers from memory. NOLINTNEXTLINE(clang-analyzer-unix.BlockInCriticalSection)
    const ssize_t length = fd >= 0 ? ::read(fd, name, sizeof name - 1) : 0;
    if (fd >= 0) {
        ::close(fd);
    }
    constexpr std::string_view kernels = "iou-wrk-";
    if (length <= 0 || !std::string_view(name).starts_with(kernels)) {
        return worker;
    }
    const auto thread = static_cast<pid_t>(std::strtol(name + kernels.size(), nullptr, 10));
    return thread > 0 ? thread : worker;
}

}  // namespace

Pace::Pace(SiteModel site, const Options& options)
    : options_(options), start_(Clock::now()), machine_(std::move(site), options.machine, *this) {
    options_.lead = static_cast<Time>(static_cast<double>(options.lead) * options.speed);
    longest_debt_ = options_.lead + static_cast<Time>(static_cast<double>(longest_delay) * options.speed);
    waiting_.reserve(1024);
    expected_.reserve(1024);
}

Pace::Call::Call(Pace& pace, const Operation& operation, pid_t thread, Time came) : pace_(pace) {
    if (pace_.options_.paced) {
        pace_.begin(*this, operation, thread, came);
    }
}

Pace::Call::~Call() {
    wait();
    if (caller_ != nullptr) {
        pace_.answered(*this);
    }
}

void Pace::Call::wait() {
    if (pace_.options_.paced && !waited_) {
        waited_ = true;
        pace_.finish(*this);
    }
}

Time Pace::now() const {
    const auto passed = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start_).count();
    return options_.speed == 1 ? passed : static_cast<Time>(static_cast<double>(passed) * options_.speed);
}

Time Pace::came() const {
    const Time copied = options_.paced ? worked() - worked_before : 0;
    return now() - static_cast<Time>(static_cast<double>(copied) * options_.speed);
}

void Pace::served() const {
    if (options_.paced) {
        worked_before = worked();
    }
}

Pace::Clock::time_point Pace::real(Time at) const {
    return start_ + std::chrono::nanoseconds(
                        options_.speed == 1 ? at : static_cast<Time>(static_cast<double>(at) / options_.speed));
}

Pace::Caller& Pace::caller_of(pid_t thread) {
    if (callers_.size() >= most_callers && !callers_.contains(thread)) {
        std::erase_if(callers_, [](const auto& one) { return one.second.instead != nullptr; });
        std::erase_if(callers_, [](const auto& one) { return one.second.under_way == 0 && !one.second.expected; });
    }
    const auto [found, fresh] = callers_.try_emplace(thread);
    Caller& caller = found->second;
    if (fresh) {
        caller.patience = options_.lead;
        const pid_t behind = thread_behind(thread);
        if (behind != thread) {
            Caller& other = callers_[behind];
            other.patience = std::max(other.patience, options_.lead / least_patience);
            caller.instead = &other;
        }
    }
    return caller.instead != nullptr ? *caller.instead : caller;
}

/// For the machine, of a call that has come at `at`.
Time Pace::arrival(const Caller& caller, Time at) const {
    const Time between = caller.being_answered > 0 ? 0 : at - caller.answered;
    if (!caller.met || between > longest_debt_) {
        return at;
    }
    // A pause that is twice as long is one of the program alone, and all of it counts.
    const Time counts = std::clamp<Time>(2 * (between - options_.lead), 0, between);
    return std::clamp(caller.told + counts, at - longest_debt_, at);
}

void Pace::expect(Caller& caller, Time from) {
    if (!caller.expected) {
        caller.expected = true;
        caller.from = from;
        expected_.push_back(&caller);
        until_ = std::min(until_, from);
    }
}

void Pace::stop_expecting(Caller& caller) {
    if (caller.expected) {
        caller.patience = std::min(options_.lead, 2 * caller.patience);
        caller.expected = false;
        std::erase(expected_, &caller);
    }
}

/// After an answer. Who has other calls under way may wait for these, and keeps the machine busy with them.
Time Pace::patience(const Caller& caller) {
    return caller.under_way > 0 ? caller.patience / 8 : caller.patience;
}

/// The events up to now, but for those behind a call that is expected. The machine's clock stands at the last of them.
void Pace::settle() {
    const Time at = now();
    until_ = at;
    for (std::size_t i = 0; i < expected_.size();) {
        Caller& caller = *expected_[i];
        if (caller.ended == 0 && at - caller.answered > patience(caller)) {
            caller.patience = std::max(caller.patience / 2, options_.lead / least_patience);
            caller.expected = false;
            expected_[i] = expected_.back();
            expected_.pop_back();
        } else {
            until_ = std::min(until_, std::max(caller.from, at - (caller.ended > 0 ? longest_debt_ : options_.lead)));
            ++i;
        }
    }
    while (machine_.next() <= until_) {  // which is earlier when a call ends that another one will follow
        machine_.step();
    }
}

/// When there is something to do, as far as is known now.
Time Pace::look_again() const {
    const Time next = machine_.next();
    const Time here = now();
    Time at = next;
    const Time no_later = next < never - options_.lead ? next + options_.lead : never;  // nothing may be pending
    for (const Caller* caller : expected_) {
        if (caller->from < next) {
            const Time over = std::min(caller->answered + patience(*caller) + 1, no_later);
            at = std::max(at, caller->ended > 0 ? here + options_.lead : over);
        }
    }
    return std::min(at, here + longest_sleep);
}

void Pace::wake_leader() {
    if (leader_ != nullptr && look_again() < armed_) {
        leader_->wake_.notify_one();  // it sleeps too long
    }
}

void Pace::begin(Call& call, Operation operation, pid_t thread, Time came) {
    operation.tag = reinterpret_cast<std::uintptr_t>(&call);
    const std::lock_guard lock(mutex_);
    Time at = came < 0 ? now() : came;
    call.done_ = false;
    if (thread != 0) {
        Caller& caller = caller_of(thread);
        call.caller_ = &caller;
        at = std::max(arrival(caller, at), machine_.now());
        caller.met = true;
        ++caller.under_way;
        stop_expecting(caller);
        if (caller.ended > caller.being_answered) {
            expect(caller, at);
        }
    }
    machine_.submit(std::max(at, machine_.now()), operation);
    settle();
    wake_leader();
}

void Pace::finish(Call& call) {
    std::unique_lock lock(mutex_);
    if (!call.done_) {
        call.place_ = waiting_.size();
        waiting_.push_back(&call);
        while (!call.done_) {
            if (leader_ != nullptr) {
                call.wake_.wait(lock);
                continue;
            }
            leader_ = &call;
            armed_ = look_again();
            call.wake_.wait_until(lock, real(armed_));
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
    if (call.caller_ != nullptr) {
        ++call.caller_->being_answered;
        call.caller_->told = std::max(call.caller_->told, call.ended_);
    }
}

/// The answer has left. The thread may have called again meanwhile.
void Pace::answered(Call& call) {
    const std::lock_guard lock(mutex_);
    Caller& caller = *call.caller_;
    --caller.under_way;
    --caller.ended;
    --caller.being_answered;
    caller.answered = now();
    wake_leader();
}

void Pace::done(const Done& what) {
    // The tag is the address that was put there.
    Call& call = *reinterpret_cast<Call*>(static_cast<std::uintptr_t>(what.tag));
    call.done_ = true;
    call.ended_ = what.at;
    if (call.caller_ != nullptr) {
        ++call.caller_->ended;
        expect(*call.caller_, what.at);
    }
    if (call.place_ != Call::absent) {
        call.wake_.notify_one();
    }
}

}  // namespace sonde::simulate
