// SPDX-License-Identifier: Apache-2.0
#include "workloads/timed_stream.hpp"

#include <time.h>
#include <cerrno>
#include <cstdio>

namespace sonde::workloads {

template <class Time>
void TimedStream<Time>::begin_timing() {
    channel_->begin_timed_part();
    time_.refresh();
    phase_start_tick_ = time_.phase_start_tick();
    const plan::Stop& stop = job_.phase->stop;
    if (job_.is_timed) {
        const auto ticks_at = [this](plan::Nanoseconds ns) {
            return phase_start_tick_ + time_.ticks_of(static_cast<std::uint64_t>(ns));
        };
        deadline_tick_ = stop.time ? ticks_at(*stop.time) : stop.stonewall ? ticks_at(*stop.stonewall) : no_tick;
        min_end_tick_ = stop.min_time ? ticks_at(*stop.min_time) : 0;
        stops_with_first_task_ = stop.first_done;
    }
    slices_.begin(meter_.slice_bytes(), meter_.slice_operations(job_.max_slices),
                  static_cast<std::uint32_t>(job_.max_slices), phase_start_tick_,
                  time_.ticks_of(static_cast<std::uint64_t>(job_.slice_ns)));
    schedule_next_event(phase_start_tick_);
}

template <class Time>
bool TimedStream<Time>::open_file(const backends::OpenRequest& request) {
    const std::uint64_t from = now();
    const int result = channel_->open(0, request);
    const std::uint64_t to = now();
    meter_.parts_of_work[meters::part_open].add(ns_since_phase_start(from), ns_since_phase_start(to));
    if (result < 0) {
        fail_operation(request.path, "open", -result, 0);
        return false;
    }
    meter_.histogram(meters::kind_open).add(time_.duration_ns(to - from));
    return true;
}

template <class Time>
bool TimedStream<Time>::close_file(const std::string& path) {
    const std::uint64_t from = now();
    const int result = channel_->close(0);
    const std::uint64_t to = now();
    meter_.parts_of_work[meters::part_close].add(ns_since_phase_start(from), ns_since_phase_start(to));
    meter_.histogram(meters::kind_close).add(time_.duration_ns(to - from));
    if (result < 0) {
        fail_operation(path, "close", -result, 0);
    }
    return result >= 0;
}

template <class Time>
void TimedStream<Time>::run() {
    begin_timing();
    const meters::CpuTime before = meters::read_thread_cpu_time();
    meter_.live_counters.active.store(1, std::memory_order_relaxed);
    std::uint64_t pass = 0;
    while (run_pass(pass) && needs_another_pass()) {
        ++pass;
    }
    if (must_wear_out()) {
        continue_to_wearout_target();  // the others wait for this task's count
    }
    while (job_.intra_barriers && intra_barriers_passed_ < 2 && wait_at_intra_barrier()) {
    }
    const meters::CpuTime after = meters::read_thread_cpu_time();
    meter_.user_ns = after.user_ns - before.user_ns;
    meter_.system_ns = after.system_ns - before.system_ns;
    meter_.finished_ns = ns_since_phase_start(now());
    meter_.live_counters.active.store(0, std::memory_order_relaxed);
    if (stops_with_first_task_ && !failed_) {
        control_.is_first_task_done.store(1, std::memory_order_relaxed);
    }
    if (!deadline_passed_) {
        meter_.stonewall_bytes = bytes_done_;
        meter_.stonewall_operations = operations_done_;
    }
    meter_.deadline_passed = deadline_passed_;
    meter_.retries = channel_->retries();
    meter_.slices_used = slices_.count_used_slices();
    meter_.slices_doublings = slices_.doublings();
}

template <class Time>
bool TimedStream<Time>::needs_another_pass() const {
    if (failed_ || should_stop() || !job_.is_timed || deadline_passed_ || operations_done_ == 0) {
        return false;
    }
    return job_.phase->stop.time.has_value() || now() < min_end_tick_;
}

template <class Time>
void TimedStream<Time>::continue_to_wearout_target() {
    wearout_ended_ = true;
    if (job_.intra_barriers && intra_barriers_passed_ == 0) {
        ++intra_barriers_passed_;  // this one never came to its transfers; the others have met before theirs
        if (!team_.wait_for_all(job_.stream_index)) {
            return;
        }
    }
    std::uint64_t target = control_.wearout_target.load();
    while (target < operations_done_ && !control_.wearout_target.compare_exchange_weak(target, operations_done_)) {
    }
    if (!team_.wait_for_all(job_.stream_index)) {
        return;
    }
    if (job_.stream_index == 0) {
        const std::uint64_t most = team_.reduce_maximum(control_.wearout_target.load());
        if (team_.location().is_leader()) {
            control_.wearout_target.store(most);
        }
    }
    if (!team_.wait_for_all(job_.stream_index)) {
        return;
    }
    wearout_target_ = std::max(control_.wearout_target.load(), operations_done_);
    deadline_tick_ = no_tick;
    schedule_next_event(now());
}

template <class Time>
bool TimedStream<Time>::handle_event(std::uint64_t from, std::uint64_t to, std::uint32_t length) noexcept {
    publish_counts();
    slices_.add(from, to, length);
    schedule_next_event(to);
    if (to < deadline_tick_) {
        return false;
    }
    // Operations in flight at the deadline count in proportion: the error is a fraction of one operation.
    const std::uint64_t before = deadline_tick_ > from ? deadline_tick_ - from : 0;
    const auto part = to > from ? static_cast<std::uint64_t>(static_cast<uint128>(length) * before / (to - from)) : 0;
    const bool first = !deadline_passed_;
    if (first) {
        deadline_passed_ = true;
        meter_.stonewall_bytes = bytes_done_ - length;
        meter_.stonewall_operations = operations_done_ - 1;
    }
    meter_.stonewall_bytes += part;
    meter_.stonewall_operations += to == deadline_tick_ ? 1U : 0U;
    return first;
}

/// Does nothing for a while; the reading of the clock afterwards.
template <class Time>
std::uint64_t TimedStream<Time>::pause(plan::Nanoseconds length) noexcept {
    if (channel_->advance_virtual_time(length)) {
        return now();
    }
    timespec remaining{length / 1'000'000'000, length % 1'000'000'000};
    while (nanosleep(&remaining, &remaining) != 0 && errno == EINTR && !should_stop()) {
    }
    return now();
}

/// Waits until an operation is due. False when the phase ends before.
template <class Time>
bool TimedStream<Time>::wait_until(std::uint64_t due) noexcept {
    // A sleep ends late by the timer slack of 50 us and the time to wake up, so the last part is spent awake.
    constexpr std::uint64_t awake_ns = 80'000, longest_sleep_ns = 100'000'000;
    publish_counts();
    const bool ends_before = due >= deadline();
    const std::uint64_t until = ends_before ? deadline() : due;
    for (std::uint64_t tick = now(); tick < until; tick = now()) {
        if (should_stop()) {
            return false;
        }
        const std::uint64_t left_ns = time_.duration_ns(until - tick);
        if (channel_->advance_virtual_time(static_cast<plan::Nanoseconds>(left_ns))) {
            break;
        }
        if (left_ns > awake_ns) {
            pause(static_cast<plan::Nanoseconds>(std::min(left_ns - awake_ns, longest_sleep_ns)));
        }
    }
    return !(ends_before && pass_deadline());
}

template <class Time>
std::int64_t TimedStream<Time>::continue_short_transfer(const backends::IoRequest& operation,
                                                        std::int64_t moved) noexcept {
    std::int64_t total = 0;
    while (moved > 0 && total + moved < operation.length) {
        ++meter_.short_operations;
        total += moved;
        moved = channel_->transfer(remaining_part(operation, static_cast<std::uint32_t>(total)));
    }
    return moved < 0 ? moved : total + moved;
}

template <class Time>
void TimedStream<Time>::fail_operation(const std::string& path, const char* operation, int code,
                                       std::uint64_t offset) noexcept {
    failed_ = true;
    ++meter_.failed_operations;
    report_error(path, operation, code, offset, channel_->last_error_text());
    std::uint32_t running = 0;
    control_.stop.compare_exchange_strong(running, ranks::NodeControl::quit_error);
}

template <class Time>
void TimedStream<Time>::fail_preparation(const char* sentence) noexcept {
    failed_ = true;
    ++meter_.failed_operations;
    report_error({}, "prepare", 0, 0, sentence);
    std::uint32_t running = 0;
    control_.stop.compare_exchange_strong(running, ranks::NodeControl::quit_error);
}

template <class Time>
void TimedStream<Time>::report_error(const std::string& path, const char* operation, int code, std::uint64_t offset,
                                     const std::string& text) noexcept {
    const std::uint32_t index = control_.error_count.fetch_add(1);
    if (index >= ranks::NodeControl::max_errors) {
        return;
    }
    ranks::ErrorSlot& slot = control_.errors[index];
    slot.state.store(1);
    slot.task = job_.task;
    slot.code = code;
    slot.offset = offset;
    slot.at_ns = ns_since_phase_start(now());
    std::snprintf(slot.operation, sizeof slot.operation, "%s", operation);
    std::snprintf(slot.path, sizeof slot.path, "%s", path.c_str());
    std::snprintf(slot.text, sizeof slot.text, "%s", text.c_str());
    slot.state.store(2);
}

template class TimedStream<MachineClock>;
template class TimedStream<ChannelClock>;

}  // namespace sonde::workloads
