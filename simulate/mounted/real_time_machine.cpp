// SPDX-License-Identifier: Apache-2.0
#include "mounted/real_time_machine.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string_view>

#include <fcntl.h>
#include <unistd.h>

namespace sonde::simulate {
namespace {

constexpr Time max_sleep = 3'600'000'000'000;
/// Longer delays in ns of the clock are not compensated. Computers have been seen to stand still for so long.
constexpr Time max_delay = 100'000'000;
/// Number of stored threads. More are a sign of reused thread ids.
constexpr std::size_t max_threads = 1U << 16U;
/// Patience is at least the lead divided by this.
constexpr Time min_patience_divisor = 64;

/// Processor time of this thread.
Time thread_cpu_time() {
    struct timespec time {};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

thread_local Time cpu_time_at_request_end = 0;

/// The thread that a thread makes calls for. Kernel threads make io_uring calls that may block; their name contains the
/// id of the submitting thread.
pid_t find_submitting_thread(pid_t worker) {
    char path[32];
    std::snprintf(path, sizeof path, "/proc/%d/comm", worker);
    const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
    char name[32] = {};
    // /proc answers from memory. NOLINTNEXTLINE(clang-analyzer-unix.BlockInCriticalSection)
    const ssize_t length = fd >= 0 ? ::read(fd, name, sizeof name - 1) : 0;
    if (fd >= 0) {
        ::close(fd);
    }
    constexpr std::string_view worker_prefix = "iou-wrk-";
    if (length <= 0 || !std::string_view(name).starts_with(worker_prefix)) {
        return worker;
    }
    const auto thread = static_cast<pid_t>(std::strtol(name + worker_prefix.size(), nullptr, 10));
    return thread > 0 ? thread : worker;
}

}  // namespace

RealTimeMachine::RealTimeMachine(SystemModel site, const RealTimeOptions& options)
    : options_(options), start_(Clock::now()), machine_(std::move(site), options.machine, *this) {
    options_.lead_time = static_cast<Time>(static_cast<double>(options.lead_time) * options.speed);
    max_lag_ = options_.lead_time + static_cast<Time>(static_cast<double>(max_delay) * options.speed);
    waiting_calls_.reserve(1024);
    expected_threads_.reserve(1024);
}

RealTimeMachine::TimedCall::TimedCall(RealTimeMachine& machine, const ModelOperation& operation, pid_t thread,
                                      Time arrival)
    : machine_(machine) {
    if (machine_.options_.is_paced) {
        machine_.begin_call(*this, operation, thread, arrival);
    }
}

RealTimeMachine::TimedCall::~TimedCall() {
    wait();
    if (thread_ != nullptr) {
        machine_.finish_answer(*this);
    }
}

void RealTimeMachine::TimedCall::wait() {
    if (machine_.options_.is_paced && !is_in_wait_queue_) {
        is_in_wait_queue_ = true;
        machine_.finish_call(*this);
    }
}

Time RealTimeMachine::now() const {
    const auto passed = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start_).count();
    return options_.speed == 1 ? passed : static_cast<Time>(static_cast<double>(passed) * options_.speed);
}

Time RealTimeMachine::request_arrival_time() const {
    const Time copy_time = options_.is_paced ? thread_cpu_time() - cpu_time_at_request_end : 0;
    return now() - static_cast<Time>(static_cast<double>(copy_time) * options_.speed);
}

void RealTimeMachine::record_request_end() const {
    if (options_.is_paced) {
        cpu_time_at_request_end = thread_cpu_time();
    }
}

RealTimeMachine::Clock::time_point RealTimeMachine::to_clock(Time time) const {
    return start_ + std::chrono::nanoseconds(
                        options_.speed == 1 ? time : static_cast<Time>(static_cast<double>(time) / options_.speed));
}

RealTimeMachine::CallingThread& RealTimeMachine::get_thread(pid_t thread) {
    if (threads_.size() >= max_threads && !threads_.contains(thread)) {
        std::erase_if(threads_, [](const auto& entry) { return entry.second.active_thread != nullptr; });
        std::erase_if(threads_,
                      [](const auto& entry) { return entry.second.in_flight == 0 && !entry.second.is_expected; });
    }
    const auto [entry, is_new] = threads_.try_emplace(thread);
    CallingThread& caller = entry->second;
    if (is_new) {
        caller.patience = options_.lead_time;
        const pid_t submitter = find_submitting_thread(thread);
        if (submitter != thread) {
            CallingThread& submitting_thread = threads_[submitter];
            submitting_thread.patience =
                std::max(submitting_thread.patience, options_.lead_time / min_patience_divisor);
            caller.active_thread = &submitting_thread;
        }
    }
    return caller.active_thread != nullptr ? *caller.active_thread : caller;
}

/// When, for the machine, a call arrives that has come at `time`.
Time RealTimeMachine::compute_arrival(const CallingThread& thread, Time time) const {
    const Time pause = thread.answers_in_progress > 0 ? 0 : time - thread.answer_time;
    if (!thread.has_called || pause > max_lag_) {
        return time;
    }
    // A pause of at least twice the lead is the program's alone and counts in full.
    const Time program_time = std::clamp<Time>(2 * (pause - options_.lead_time), 0, pause);
    return std::clamp(thread.last_answered_end + program_time, time - max_lag_, time);
}

void RealTimeMachine::expect_call(CallingThread& thread, Time earliest) {
    if (!thread.is_expected) {
        thread.is_expected = true;
        thread.earliest_next_call = earliest;
        expected_threads_.push_back(&thread);
        handled_until_ = std::min(handled_until_, earliest);
    }
}

void RealTimeMachine::stop_expecting(CallingThread& thread) {
    if (thread.is_expected) {
        thread.patience = std::min(options_.lead_time, 2 * thread.patience);
        thread.is_expected = false;
        std::erase(expected_threads_, &thread);
    }
}

/// Time that the machine waits after an answer. A thread with other calls in flight may wait for these first.
Time RealTimeMachine::current_patience(const CallingThread& thread) {
    return thread.in_flight > 0 ? thread.patience / 8 : thread.patience;
}

/// Handles the events up to now, except those after an expected call. The machine's clock stops at the last of them.
void RealTimeMachine::handle_due_events() {
    const Time time = now();
    handled_until_ = time;
    for (std::size_t i = 0; i < expected_threads_.size();) {
        CallingThread& thread = *expected_threads_[i];
        if (thread.completed == 0 && time - thread.answer_time > current_patience(thread)) {
            thread.patience = std::max(thread.patience / 2, options_.lead_time / min_patience_divisor);
            thread.is_expected = false;
            expected_threads_[i] = expected_threads_.back();
            expected_threads_.pop_back();
        } else {
            const Time allowed_lag = thread.completed > 0 ? max_lag_ : options_.lead_time;
            handled_until_ = std::min(handled_until_, std::max(thread.earliest_next_call, time - allowed_lag));
            ++i;
        }
    }
    while (machine_.next_event_time() <= handled_until_) {  // a completion may reduce handled_until_
        machine_.handle_next_event();
    }
}

/// When handle_due_events() must be called next, as far as is known now.
Time RealTimeMachine::next_action_time() const {
    const Time next_event = machine_.next_event_time();
    const Time time = now();
    Time action_time = next_event;
    const Time latest = next_event < no_time - options_.lead_time ? next_event + options_.lead_time : no_time;
    for (const CallingThread* thread : expected_threads_) {
        if (thread->earliest_next_call < next_event) {
            const Time end_of_patience = std::min(thread->answer_time + current_patience(*thread) + 1, latest);
            action_time = std::max(action_time, thread->completed > 0 ? time + options_.lead_time : end_of_patience);
        }
    }
    return std::min(action_time, time + max_sleep);
}

void RealTimeMachine::wake_event_handling_call() {
    if (event_handling_call_ != nullptr && next_action_time() < leader_wake_time_) {
        event_handling_call_->wake_up_.notify_one();  // it would sleep too long
    }
}

void RealTimeMachine::begin_call(TimedCall& call, ModelOperation operation, pid_t thread, Time arrival) {
    operation.tag = reinterpret_cast<std::uintptr_t>(&call);
    const std::lock_guard lock(mutex_);
    Time time = arrival < 0 ? now() : arrival;
    call.is_done_ = false;
    if (thread != 0) {
        CallingThread& caller = get_thread(thread);
        call.thread_ = &caller;
        time = std::max(compute_arrival(caller, time), machine_.now());
        caller.has_called = true;
        ++caller.in_flight;
        stop_expecting(caller);
        if (caller.completed > caller.answers_in_progress) {
            expect_call(caller, time);
        }
    }
    machine_.submit(std::max(time, machine_.now()), operation);
    handle_due_events();
    wake_event_handling_call();
}

void RealTimeMachine::finish_call(TimedCall& call) {
    std::unique_lock lock(mutex_);
    if (!call.is_done_) {
        call.waiting_index_ = waiting_calls_.size();
        waiting_calls_.push_back(&call);
        while (!call.is_done_) {
            if (event_handling_call_ != nullptr) {
                call.wake_up_.wait(lock);
                continue;
            }
            event_handling_call_ = &call;
            leader_wake_time_ = next_action_time();
            call.wake_up_.wait_until(lock, to_clock(leader_wake_time_));
            event_handling_call_ = nullptr;
            handle_due_events();
        }
        waiting_calls_.back()->waiting_index_ = call.waiting_index_;
        waiting_calls_[call.waiting_index_] = waiting_calls_.back();
        waiting_calls_.pop_back();
        call.waiting_index_ = TimedCall::not_waiting;
        if (event_handling_call_ == nullptr && !waiting_calls_.empty()) {
            waiting_calls_.front()->wake_up_.notify_one();  // it becomes the leader
        }
    }
    if (call.thread_ != nullptr) {
        ++call.thread_->answers_in_progress;
        call.thread_->last_answered_end = std::max(call.thread_->last_answered_end, call.end_);
    }
}

/// The answer has been sent. The thread may have called again meanwhile.
void RealTimeMachine::finish_answer(TimedCall& call) {
    const std::lock_guard lock(mutex_);
    CallingThread& thread = *call.thread_;
    --thread.in_flight;
    --thread.completed;
    --thread.answers_in_progress;
    thread.answer_time = now();
    wake_event_handling_call();
}

void RealTimeMachine::on_completion(const CompletedOperation& completed) {
    // begin_call() has stored the address in the tag.
    TimedCall& call = *reinterpret_cast<TimedCall*>(static_cast<std::uintptr_t>(completed.tag));
    call.is_done_ = true;
    call.end_ = completed.end;
    call.error_ = completed.error;
    if (call.thread_ != nullptr) {
        ++call.thread_->completed;
        expect_call(*call.thread_, completed.end);
    }
    if (call.waiting_index_ != TimedCall::not_waiting) {
        call.wake_up_.notify_one();
    }
}

}  // namespace sonde::simulate
