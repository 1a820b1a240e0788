// SPDX-License-Identifier: Apache-2.0
#include "virtual/task_scheduler.hpp"

#include <algorithm>
#include <stdexcept>

namespace sonde::simulate {

void TaskScheduler::run_tasks(std::vector<std::function<void()>> bodies, const std::vector<std::uint32_t>& clients,
                              Time start) {
    tasks_.clear();
    stacks_ = std::make_unique<FiberStacks>(bodies.size());
    for (std::size_t i = 0; i < bodies.size(); ++i) {
        auto task = std::make_unique<ScheduledTask>();
        task->fiber = std::make_unique<Fiber>(stacks_->stack(i), std::move(bodies[i]));
        task->number = static_cast<std::uint32_t>(i);
        task->stream = machine_->begin_stream(clients[i]);
        task->local_time = start;
        tasks_.push_back(std::move(task));
    }
    running_count_ = tasks_.size();
    for (const auto& task : tasks_) {
        task->is_waiting = true;
        machine_->set_alarm(start, task->number);
    }
    while (running_count_ > 0) {
        if (!machine_->handle_next_event()) {
            throw std::logic_error("the simulated tasks wait for each other and nothing is pending");
        }
    }
    for (const auto& task : tasks_) {
        machine_->end_stream(task->stream);
    }
}

void TaskScheduler::resume(std::uint32_t number, Time time) {
    ScheduledTask& task = *tasks_[number];
    task.is_waiting = false;
    task.local_time = std::max(task.local_time, time);
    current_ = number;
    task.fiber->resume();
    if (task.fiber->has_ended()) {
        --running_count_;
    }
}

void TaskScheduler::pause(ScheduledTask& task) {
    task.is_waiting = true;
    task.fiber->pause();
}

int TaskScheduler::call(ModelOperation operation) {
    ScheduledTask& task = current_task();
    operation.stream = task.stream;
    operation.tag = task.number;
    if (const std::optional<CompletedOperation> completed =
            machine_->complete_without_event(task.local_time, operation)) {
        task.local_time = completed->end;
        task.cpu_time += completed->cpu_time;
        return 0;
    }
    // The task is ahead of the machine: earlier events of other tasks come first.
    if (task.local_time > machine_->now()) {
        wait_until(task.local_time);
    }
    machine_->submit(task.local_time, operation);
    pause(task);
    return task.error;
}

void TaskScheduler::submit(ModelOperation operation, std::uint32_t slot) {
    ScheduledTask& task = current_task();
    if (task.local_time > machine_->now()) {
        wait_until(task.local_time);
    }
    operation.stream = task.stream;
    operation.tag = submitted_bit | std::uint64_t{slot} << 32U | task.number;
    ++task.submitted_count;
    machine_->submit(task.local_time, operation);
}

CompletedSlot TaskScheduler::reap() {
    ScheduledTask& task = current_task();
    while (task.completed_slots.empty()) {
        pause(task);
    }
    const CompletedSlot slot = task.completed_slots.front();
    task.completed_slots.pop_front();
    --task.submitted_count;
    return slot;
}

void TaskScheduler::wait_until(Time time) {
    ScheduledTask& task = current_task();
    machine_->set_alarm(time, task.number);
    pause(task);
}

void TaskScheduler::wait_at_barrier() {
    ScheduledTask& task = current_task();
    at_barrier_.push_back(task.number);
    barrier_time_ = std::max(barrier_time_, task.local_time);
    if (at_barrier_.size() == tasks_.size()) {
        std::vector<std::uint32_t> numbers;
        numbers.swap(at_barrier_);
        std::sort(numbers.begin(), numbers.end());
        const Time time = std::max(barrier_time_, machine_->now());
        barrier_time_ = 0;
        for (const std::uint32_t number : numbers) {
            machine_->set_alarm(time, number);
        }
    }
    pause(task);
}

void TaskScheduler::on_completion(const CompletedOperation& completed) {
    const auto number = static_cast<std::uint32_t>(completed.tag & 0xffffffffU);
    ScheduledTask& task = *tasks_[number];
    task.cpu_time += completed.cpu_time;
    if ((completed.tag & submitted_bit) == 0) {
        task.error = completed.error;
        resume(number, completed.end);
        return;
    }
    task.completed_slots.push_back({static_cast<std::uint32_t>(completed.tag >> 32U) & 0x7fffffffU, completed.error});
    if (task.is_waiting) {
        resume(number, completed.end);
    }
}

void TaskScheduler::on_alarm(Time time, std::uint64_t tag) {
    resume(static_cast<std::uint32_t>(tag), time);
}

}  // namespace sonde::simulate
