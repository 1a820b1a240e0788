// SPDX-License-Identifier: Apache-2.0
// A storage of exactly known speed: each operation ends at a time that follows from the schedule alone. With the
// virtual clock nothing waits and the truth is exact; with the real clock the channel sleeps until the scheduled end.
// All arithmetic of the engine is tested against it.
#include "backends/backend.hpp"
#include "meters/clock.hpp"

#include <time.h>
#include <algorithm>
#include <cmath>
#include <vector>

namespace sonde::backends {
namespace {

/// Time to move bytes under a rate that changes with time.
class RateProfile {
 public:
    RateProfile(const plan::Paced& paced, int task) : steps_(paced.schedule), ramp_(paced.ramp) {
        if (const auto slow = paced.slow_tasks.find(task); slow != paced.slow_tasks.end()) {
            for (plan::Paced::RateStep& step : steps_) {
                step.rate /= slow->second;
            }
        }
    }

    /// End of a move of `bytes` that starts at `start` (ns; fractions kept). Without a schedule moves take no time.
    double transfer_end(double start, double bytes) const {
        double now = start;
        for (std::size_t i = 0; i < steps_.size(); ++i) {
            const bool last = i + 1 == steps_.size();
            const double until = last ? HUGE_VAL : static_cast<double>(steps_[i + 1].begin);
            if (now >= until) {
                continue;
            }
            const double rate = rate_at(i, now) / 1e9;  // bytes per ns
            const double slope = last || !ramp_ ? 0.0 : get_rate_slope(i) / 1e9;
            const double room = last ? HUGE_VAL : (rate + slope * (until - now) / 2) * (until - now);
            if (bytes <= room) {
                // bytes = rate x + slope x² / 2
                const double x = std::abs(slope) < 1e-300
                                     ? bytes / rate
                                     : 2 * bytes / (rate + std::sqrt(std::max(0.0, rate * rate + 2 * slope * bytes)));
                return now + x;
            }
            bytes -= room;
            now = until;
        }
        return now;
    }

 private:
    double get_rate_slope(std::size_t i) const {
        return (steps_[i + 1].rate - steps_[i].rate) / static_cast<double>(steps_[i + 1].begin - steps_[i].begin);
    }
    double rate_at(std::size_t i, double now) const {
        const bool flat = !ramp_ || i + 1 == steps_.size();
        return flat ? steps_[i].rate
                    : steps_[i].rate + get_rate_slope(i) * (now - static_cast<double>(steps_[i].begin));
    }

    std::vector<plan::Paced::RateStep> steps_;
    bool ramp_;
};

constexpr double latest_time = 4e18;  ///< ns, 126 years: later times count as this one, and nothing overflows

class PacedChannel final : public Channel, private NameOperations {
 public:
    explicit PacedChannel(const ChannelSetup& setup)
        : paced_(*setup.paced),
          has_delays_(!setup.paced->delays.first_task_only || setup.task == 0),
          rate_profile_(*setup.paced, setup.task),
          pending_(static_cast<std::size_t>(setup.io->queue_depth)) {}

    int open(std::uint16_t /*file*/, const OpenRequest& request) override {
        return request.write ? delay(paced_.delays.create) : 0;
    }
    int fsync(std::uint16_t /*file*/) override { return delay(paced_.delays.sync); }
    int close(std::uint16_t /*file*/) override { return delay(paced_.delays.close); }
    int stat(Directory /*root*/, const char* /*path*/) noexcept override { return delay_name_operation(); }
    int remove(Directory /*root*/, const char* /*path*/) noexcept override { return delay_name_operation(); }

    NameOperations* name_operations() override { return this; }

    bool advance_virtual_time(std::int64_t ns) noexcept override {
        virtual_time_ += paced_.virtual_clock ? static_cast<double>(ns) : 0;
        return paced_.virtual_clock;
    }
    void begin_timed_part() noexcept override {
        begin_ns_ = meters::Clock::monotonic_ns();
        server_free_time_ = virtual_time_ = 0;
        pending_count_ = first_pending_ = 0;
    }
    std::int64_t virtual_time_ns() const noexcept override {
        return std::llround(std::min(virtual_time_, latest_time));
    }

    std::int64_t transfer(const IoRequest& operation) noexcept override {
        const PendingOperation done = schedule(operation);
        wait_for(done.completion_time);
        return done.result;
    }
    bool submit(const IoRequest& operation) noexcept override {
        if (pending_count_ == pending_.size()) {
            return false;
        }
        pending_[(first_pending_ + pending_count_++) % pending_.size()] = schedule(operation);
        return true;
    }
    std::size_t reap(std::span<Completion> done) noexcept override {
        if (pending_count_ == 0 || done.empty()) {
            return 0;
        }
        const PendingOperation first = pending_[first_pending_];
        first_pending_ = (first_pending_ + 1) % pending_.size();
        --pending_count_;
        wait_for(first.completion_time);
        done[0] = {first.slot, first.result};
        return 1;
    }

 private:
    // Names: each operation takes the latency, and its bytes the time of the schedule. Entering and leaving take none.
    Directory open_directory(Directory /*parent*/, const char* /*name*/) noexcept override { return 0; }
    void close_directory(Directory /*directory*/) noexcept override {}
    int make_file(Directory /*parent*/, const char* /*name*/, const NewFileOptions& options) noexcept override {
        const int result = static_cast<int>(std::min<std::int64_t>(0, delay_transfer(options.content.size())));
        delay(paced_.delays.create);
        delay(options.fsync ? paced_.delays.sync : 0);
        delay(options.use_mknod ? 0 : paced_.delays.close);
        return result;
    }
    int make_directory(Directory /*parent*/, const char* /*name*/) noexcept override { return delay_name_operation(); }
    int stat_entry(Directory /*parent*/, const char* /*name*/, const StatOptions& /*options*/) noexcept override {
        return delay_name_operation();
    }
    int read_attributes(Directory /*parent*/, const char* /*name*/, const StatOptions& /*options*/,
                        EntryAttributes& attributes) noexcept override {
        attributes.kind = EntryKind::file;
        return delay_name_operation();
    }
    int open_close(Directory /*parent*/, const char* /*name*/) noexcept override {
        const int opened = delay_name_operation();
        delay(paced_.delays.close);
        return opened;
    }
    std::int64_t read_file(Directory /*parent*/, const char* /*name*/, std::span<std::byte> into) noexcept override {
        const std::int64_t got = delay_transfer(into.size());
        delay(paced_.delays.close);
        return got;
    }
    int rename(Directory /*parent*/, const char* /*name*/, const char* /*to*/) noexcept override {
        return delay_name_operation();
    }
    int remove_file(Directory /*parent*/, const char* /*name*/) noexcept override { return delay_name_operation(); }
    int remove_directory(Directory /*parent*/, const char* /*name*/) noexcept override {
        return delay_name_operation();
    }
    std::int64_t read_entries(Directory /*directory*/, std::span<std::byte> /*buffer*/) noexcept override {
        return delay_name_operation();
    }
    bool next_entry(std::span<const std::byte> /*listed*/, std::size_t& /*place*/,
                    DirectoryEntry& /*entry*/) const noexcept override {
        return false;
    }
    int sync_file_system(Directory /*directory*/) noexcept override { return delay_name_operation(); }

    struct PendingOperation {
        double completion_time = 0;
        std::uint32_t slot = 0;
        std::int64_t result = 0;
    };

    /// One server moves the bytes of one operation after the other; the latency is added to each and overlaps.
    PendingOperation schedule(const IoRequest& operation) noexcept {
        server_free_time_ = rate_profile_.transfer_end(std::max(server_free_time_, virtual_time_), operation.length);
        const bool fails = paced_.fail_after && issued_operations_++ >= *paced_.fail_after;
        const plan::Nanoseconds delay = paced_.latency + (operation.length > 0 ? paced_.delays.transfer : 0);
        return {server_free_time_ + (has_delays_ ? static_cast<double>(delay) : 0.0), operation.slot,
                fails ? -static_cast<std::int64_t>(paced_.fail_errno) : static_cast<std::int64_t>(operation.length)};
    }
    /// An operation without data takes the latency.
    int delay_name_operation() noexcept { return static_cast<int>(std::min<std::int64_t>(0, delay_transfer(0))); }
    std::int64_t delay_transfer(std::size_t bytes) noexcept {
        IoRequest operation;
        operation.length = static_cast<std::uint32_t>(bytes);
        const PendingOperation done = schedule(operation);
        wait_for(done.completion_time);
        return done.result;
    }
    /// Time that passes outside the schedule. With the real clock it begins now, not when the last operation ended.
    int delay(plan::Nanoseconds delay) noexcept {
        if (delay > 0 && has_delays_) {
            if (!paced_.virtual_clock) {
                virtual_time_ = std::max(virtual_time_, static_cast<double>(meters::Clock::monotonic_ns() - begin_ns_));
            }
            wait_for(virtual_time_ + static_cast<double>(delay));
        }
        return 0;
    }
    void wait_for(double due) noexcept {
        virtual_time_ = std::max(virtual_time_, due);
        if (paced_.virtual_clock) {
            return;
        }
        const std::int64_t target = begin_ns_ + std::llround(std::min(due, latest_time));
        const timespec until{target / 1'000'000'000, target % 1'000'000'000};
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
        }
    }

    const plan::Paced& paced_;
    bool has_delays_;  ///< this task has latency and delays
    RateProfile rate_profile_;
    std::vector<PendingOperation> pending_;
    std::size_t first_pending_ = 0, pending_count_ = 0;
    double server_free_time_ = 0, virtual_time_ = 0;
    std::int64_t begin_ns_ = 0;
    std::uint64_t issued_operations_ = 0;
};

}  // namespace

extern const Backend paced_backend;
const Backend paced_backend{
    .name = "paced",
    .summary = "completes operations on an exactly known schedule: tests the arithmetic",
    .traits = {.stores_data = false,
               .needs_files = false,
               .supports_queue = true,
               .supports_direct = true,
               .supports_sync = true,
               .supports_trees = true,
               .supports_virtual_time = true},
    .check_availability = [](const std::string&) { return Availability{}; },
    .make_channel = [](const ChannelSetup& setup) -> std::unique_ptr<Channel> {
        return std::make_unique<PacedChannel>(setup);
    },
};

}  // namespace sonde::backends
