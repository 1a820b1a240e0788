// SPDX-License-Identifier: Apache-2.0
// The machine in real time: its clock is CLOCK_MONOTONIC since the mount. A thread that serves a call submits the
// operation when the call arrives, and waits until the machine has completed it. There is no thread for time: one of
// the waiting threads, the leader, sleeps until the next event and handles it for all.
//
// A call is answered at or after its completion in the machine, always a little later: the thread must wake up, and
// the answer and the program's next call take time. This delay belongs neither to the machine nor to the program. So
// the next call of a thread arrives, for the machine, at the completion of its last call plus the time since the answer
// in excess of `lead_time`. That may be in the past. To keep the events of other threads from being ahead of it, the
// machine stands still at the completion until the next call comes, for at most a lead. If the thread does not call in
// time (it has ended, or waits for another thread), the machine waits half as long for it the next time.
#pragma once

#include "model/machine.hpp"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <unordered_map>
#include <vector>

#include <sys/types.h>

namespace sonde::simulate {

/// Default time in ns from an answer to the next call that counts as delay of the mount.
constexpr Time default_lead = 100'000;

struct RealTimeOptions {
    MachineOptions machine;
    bool is_paced = true;           ///< false: calls end when their bytes are stored
    double speed = 1;               ///< seconds of the machine per second of the clock
    Time lead_time = default_lead;  ///< ns of the clock
};

class RealTimeMachine final : public Listener {
 public:
    RealTimeMachine(SystemModel site, const RealTimeOptions& options);

    struct CallingThread;

    /// One operation from its arrival to the answer. The answer may be sent after wait(), which the destructor calls
    /// too. The destructor records that the answer has been sent.
    class TimedCall {
     public:
        /// `thread` makes the call; 0: the kernel. `arrival`: time of the machine; -1: now.
        TimedCall(RealTimeMachine& machine, const ModelOperation& operation, pid_t thread, Time arrival = -1);
        ~TimedCall();
        TimedCall(const TimedCall&) = delete;
        TimedCall& operator=(const TimedCall&) = delete;

        void wait();
        /// errno of the call, or 0; after wait().
        int error() const { return error_; }

     private:
        friend class RealTimeMachine;
        static constexpr std::size_t not_waiting = ~std::size_t{0};

        RealTimeMachine& machine_;
        std::condition_variable wake_up_;
        CallingThread* thread_ = nullptr;
        std::size_t waiting_index_ = not_waiting;  ///< in waiting_calls_
        Time end_ = 0;
        int error_ = 0;
        bool is_done_ = true, is_in_wait_queue_ = false;
    };

    /// Calls `action` with the machine, at the time now. The action takes no simulated time.
    template <class Action>
    auto call_machine(Action&& action) {
        const std::lock_guard lock(mutex_);
        handle_due_events();
        return action(machine_);
    }
    /// Time of the machine now.
    Time now() const;
    /// When the request of this thread arrived: before its data was copied. The processor time of the thread since
    /// record_request_end() is that of the copy.
    Time request_arrival_time() const;
    /// Called by a thread that has served a request.
    void record_request_end() const;
    const SystemModel& system() const { return machine_.system(); }
    bool is_paced() const { return options_.is_paced; }
    double speed() const { return options_.speed; }

    void on_completion(const CompletedOperation& completed) override;
    void on_alarm(Time, std::uint64_t) override {}

    /// A thread that makes calls. Times are of the machine.
    struct CallingThread {
        Time last_answered_end = 0;             ///< completion of the last call whose answer it has
        Time answer_time = 0;                   ///< when the last answer was sent
        Time earliest_next_call = 0;            ///< while expected
        Time patience = 0;                      ///< while expected: how long the machine waits after the answer
        std::uint32_t in_flight = 0;            ///< calls
        std::uint32_t completed = 0;            ///< of these: by the machine
        std::uint32_t answers_in_progress = 0;  ///< of these: the answer may have been sent
        bool is_expected = false;               ///< the machine waits for its next call
        bool has_called = false;
        CallingThread* active_thread = nullptr;  ///< a kernel worker: the thread that it works for
    };

 private:
    using Clock = std::chrono::steady_clock;

    void begin_call(TimedCall& call, ModelOperation operation, pid_t thread, Time arrival);
    void finish_call(TimedCall& call);
    void finish_answer(TimedCall& call);
    void handle_due_events();
    CallingThread& get_thread(pid_t thread);
    Time compute_arrival(const CallingThread& thread, Time time) const;
    void expect_call(CallingThread& thread, Time earliest);
    void stop_expecting(CallingThread& thread);
    static Time current_patience(const CallingThread& thread);
    Time next_action_time() const;
    void wake_event_handling_call();
    Clock::time_point to_clock(Time time) const;

    RealTimeOptions options_;
    Clock::time_point start_;
    Time max_lag_ = 0;  ///< a thread's calls arrive at most this long in the past
    std::mutex mutex_;
    Machine machine_;
    std::unordered_map<pid_t, CallingThread> threads_;
    std::vector<CallingThread*> expected_threads_;
    Time handled_until_ = 0;  ///< of the events that handle_due_events() handles
    std::vector<TimedCall*> waiting_calls_;
    TimedCall* event_handling_call_ = nullptr;  ///< the waiting call that sleeps until `leader_wake_time_`
    Time leader_wake_time_ = no_time;
};

}  // namespace sonde::simulate
