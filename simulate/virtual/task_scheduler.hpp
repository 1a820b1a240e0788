// SPDX-License-Identifier: Apache-2.0
// Runs the tasks of a phase, each in a fiber, in the order of the machine's clock. A task may run ahead of that clock
// while it touches nothing that other tasks see; before it does, it waits until the clock has reached its time.
#pragma once

#include "model/machine.hpp"
#include "virtual/fiber.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

namespace sonde::simulate {

/// A submitted operation that is done.
struct CompletedSlot {
    std::uint32_t slot = 0;
    int error = 0;  ///< errno
};

/// One stream of the engine in virtual time. Times are in ns since the machine was built.
struct ScheduledTask {
    std::unique_ptr<Fiber> fiber;
    std::uint32_t number = 0;
    StreamId stream = 0;
    Time local_time = 0;                        ///< its clock: at or after the machine's
    Time cpu_time = 0;                          ///< processor time of its calls in this phase
    bool is_waiting = false;                    ///< for a call, a time, or a submitted operation
    int error = 0;                              ///< errno of its last call
    std::deque<CompletedSlot> completed_slots;  ///< submitted operations that are done and not reaped
    std::uint32_t submitted_count = 0;          ///< submitted operations that are not reaped
};

class TaskScheduler final : public Listener {
 public:
    TaskScheduler() = default;
    void set_machine(Machine& machine) { machine_ = &machine; }
    Machine& machine() { return *machine_; }

    /// Runs `bodies` from `start` on until all have returned. `clients` gives the node of each.
    void run_tasks(std::vector<std::function<void()>> bodies, const std::vector<std::uint32_t>& clients, Time start);
    /// The task that runs now.
    ScheduledTask& current_task() { return *tasks_[current_]; }
    const ScheduledTask& task(std::size_t number) const { return *tasks_[number]; }

    // --- called by tasks ---

    /// Performs one call and waits for its end. Returns its errno, or 0.
    int call(ModelOperation operation);
    /// Submits an operation under a slot number; reap() returns the slots of completed operations.
    void submit(ModelOperation operation, std::uint32_t slot);
    /// Waits for one submitted operation.
    CompletedSlot reap();
    /// Waits until that time of the machine.
    void wait_until(Time time);
    /// Barrier: returns in all tasks at the time when the last one has called it.
    void wait_at_barrier();

    void on_completion(const CompletedOperation& completed) override;
    void on_alarm(Time time, std::uint64_t tag) override;

 private:
    void resume(std::uint32_t number, Time time);
    static void pause(ScheduledTask& task);

    static constexpr std::uint64_t submitted_bit = 1ULL << 63U;

    Machine* machine_ = nullptr;
    std::vector<std::unique_ptr<ScheduledTask>> tasks_;
    std::unique_ptr<FiberStacks> stacks_;
    std::size_t current_ = 0, running_count_ = 0;
    std::vector<std::uint32_t> at_barrier_;  ///< tasks that have called wait_at_barrier()
    Time barrier_time_ = 0;                  ///< latest clock of these
};

}  // namespace sonde::simulate
