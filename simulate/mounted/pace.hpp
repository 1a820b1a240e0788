// SPDX-License-Identifier: Apache-2.0
// The machine in real time: its clock is CLOCK_MONOTONIC since the mount. A thread that serves a call hands the
// operation over when it arrives and waits until the machine says that it is done. There is no thread for time: of
// those that wait, one sleeps until the next event and handles it for all.
#pragma once

#include "model/machine.hpp"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <vector>

namespace sonde::simulate {

/// How far the machine's clock may run ahead of the real one: about what a sleeping thread needs to wake up and to
/// answer. Calls that last no longer are answered at once, and what is owed is slept when it has come to more: the
/// machine does not take the next call of a stream before the last one has ended, so rates are those of the model.
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

    /// One operation, from its arrival to the time at which the machine has done it: wait(), which the end of the
    /// object calls too.
    class Call {
     public:
        Call(Pace& pace, Operation operation);
        ~Call() { wait(); }
        Call(const Call&) = delete;
        Call& operator=(const Call&) = delete;
        void wait();

     private:
        friend class Pace;
        Pace& pace_;
        std::condition_variable wake_;
        std::size_t place_ = absent;  ///< in waiting_
        bool done_ = true;
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
    const SiteModel& site() const { return machine_.site(); }
    bool paced() const { return options_.paced; }
    double speed() const { return options_.speed; }

    void done(const Done& what) override;
    void woken(Time, std::uint64_t) override {}

 private:
    using Clock = std::chrono::steady_clock;

    void begin(Call& call, Operation operation);
    void finish(Call& call);
    void settle();  ///< handles what should have happened by now
    Clock::time_point real(Time at) const;

    Options options_;
    Clock::time_point start_;
    std::mutex mutex_;
    Machine machine_;
    std::vector<Call*> waiting_;
    Call* leader_ = nullptr;  ///< of those that wait, the one that sleeps until `armed_`
    Time armed_ = never;
};

}  // namespace sonde::simulate
