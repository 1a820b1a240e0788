// SPDX-License-Identifier: Apache-2.0
// The machine in real time: its clock is CLOCK_MONOTONIC since the mount. A thread that serves a call hands the
// operation over when it arrives and waits until the machine says that it is done. There is no thread for time: of
// those that wait, one sleeps until the next event and handles it for all.
//
// A call is never answered before the machine has done it, and always a little later: the thread must wake up, and the
// answer and the program's next call need time to come. None of this is the machine's, and it must not become the
// program's. So the next call of a thread arrives, for the machine, when the last one ended, and later only by what has
// passed since the answer beyond `lead`. That may lie in the past. For others not to be ahead then, the machine stands
// still at the end of a call until the next one comes, for a lead at most. A thread that has not come in time (it
// ended, or waits for another one, perhaps at a lock of the kernel) is waited for half as long the next time.
#pragma once

#include "model/machine.hpp"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <unordered_map>
#include <vector>

#include <sys/types.h>

namespace sonde::simulate {

/// About what an answer and the next call need between program and mount.
constexpr Time usual_lead = 100'000;

class Pace final : public Listener {
 public:
    struct Options {
        Machine::Options machine;
        bool paced = true;       ///< false: calls end when their bytes are stored
        double speed = 1;        ///< seconds of the machine in a second of the clock
        Time lead = usual_lead;  ///< of the clock
    };
    Pace(SiteModel site, const Options& options);

    struct Caller;

    /// One operation, from its arrival to the answer. The caller may be answered after wait(), which the end of the
    /// object calls too; the end of the object says that it has been.
    class Call {
     public:
        /// `thread` that makes the call; 0: the kernel on its own. `came`: when, of the machine's clock; -1: now.
        Call(Pace& pace, const Operation& operation, pid_t thread, Time came = -1);
        ~Call();
        Call(const Call&) = delete;
        Call& operator=(const Call&) = delete;
        void wait();

     private:
        friend class Pace;
        Pace& pace_;
        std::condition_variable wake_;
        Caller* caller_ = nullptr;
        std::size_t place_ = absent;  ///< in waiting_
        Time ended_ = 0;
        bool done_ = true, waited_ = false;
        static constexpr std::size_t absent = ~std::size_t{0};
    };

    /// Asks or tells the machine something that takes no time. Its clock stands at now.
    template <class Ask>
    auto with(Ask&& ask) {
        const std::lock_guard lock(mutex_);
        settle();
        return ask(machine_);
    }
    /// Of the machine's clock, without asking it.
    Time now() const;
    /// When the request came that this thread serves: before its data was copied to us. What the thread has worked
    /// since served() was that copy.
    Time came() const;
    /// This thread has served a request.
    void served() const;
    const SiteModel& site() const { return machine_.site(); }
    bool paced() const { return options_.paced; }
    double speed() const { return options_.speed; }

    void done(const Done& what) override;
    void woken(Time, std::uint64_t) override {}

    /// A thread that calls. Times are of the machine's clock.
    struct Caller {
        Time told = 0;                     ///< end of the last call of which it knows
        Time answered = 0;                 ///< when it came to know
        Time from = 0;                     ///< expected: when, for the machine, it may call next
        Time patience = 0;                 ///< expected: how long after the answer
        std::uint32_t under_way = 0;       ///< calls
        std::uint32_t ended = 0;           ///< of these: the machine has done them
        std::uint32_t being_answered = 0;  ///< of these: the answer may have left
        bool expected = false, met = false;
        Caller* instead = nullptr;  ///< a worker of the kernel calls for this one
    };

 private:
    using Clock = std::chrono::steady_clock;

    void begin(Call& call, Operation operation, pid_t thread, Time came);
    void finish(Call& call);
    void answered(Call& call);
    void settle();  ///< handles what should have happened by now
    Caller& caller_of(pid_t thread);
    Time arrival(const Caller& caller, Time at) const;
    void expect(Caller& caller, Time from);
    void stop_expecting(Caller& caller);
    static Time patience(const Caller& caller);
    Time look_again() const;
    void wake_leader();
    Clock::time_point real(Time at) const;

    Options options_;
    Clock::time_point start_;
    Time longest_debt_ = 0;
    std::mutex mutex_;
    Machine machine_;
    std::unordered_map<pid_t, Caller> callers_;
    std::vector<Caller*> expected_;
    Time until_ = 0;  ///< of the events that settle() handles
    std::vector<Call*> waiting_;
    Call* leader_ = nullptr;  ///< of those that wait, the one that sleeps until `armed_`
    Time armed_ = never;
};

}  // namespace sonde::simulate
