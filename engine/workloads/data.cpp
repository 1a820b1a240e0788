// SPDX-License-Identifier: Apache-2.0
#include "workloads/data.hpp"
#include "plan/wide.hpp"

#include "meters/cpu.hpp"
#include "workloads/buffers.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <limits>

namespace sonde::workloads {
namespace {

using backends::Operation;
using meters::StreamMeter;
using patterns::Entry;

constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();

/// The machine's clock in counter ticks.
class MachineTime {
 public:
    MachineTime(const meters::Clock& clock, const ranks::NodeControl& control) : clock_(clock), control_(control) {}
    std::uint64_t raw() const noexcept { return clock_.ticks(); }
    std::uint64_t duration_ns(std::uint64_t ticks) const noexcept { return clock_.duration_ns(ticks); }
    std::uint64_t ticks_of(std::uint64_t ns) const noexcept { return clock_.ticks_of(ns); }
    /// Reading at the common start of the phase.
    std::uint64_t origin() const noexcept {
        const std::int64_t start = control_.phase_start_ns.load(std::memory_order_relaxed);
        return clock_.base_ticks +
               clock_.ticks_of(static_cast<std::uint64_t>(std::max<std::int64_t>(0, start - clock_.base_ns)));
    }

 private:
    const meters::Clock& clock_;
    const ranks::NodeControl& control_;
};

/// The clock of a channel that keeps its own: one tick is one nanosecond.
class ChannelTime {
 public:
    explicit ChannelTime(const backends::Channel& channel) : channel_(channel) {}
    std::uint64_t raw() const noexcept { return static_cast<std::uint64_t>(channel_.now()); }
    static std::uint64_t duration_ns(std::uint64_t ticks) noexcept { return ticks; }
    static std::uint64_t ticks_of(std::uint64_t ns) noexcept { return ns; }
    static std::uint64_t origin() noexcept { return 0; }

 private:
    const backends::Channel& channel_;
};

enum class End { finished, limit, stop };

template <class Time>
class DataStream final : public Stream {
 public:
    DataStream(const StreamJob& job, const payload::Base& base, ranks::Team& team, const meters::Clock& clock,
               StreamMeter& meter)
        : job_(job),
          team_(team),
          control_(team.control()),
          meter_(meter),
          depth_(static_cast<std::size_t>(job.phase->data.io.queue_depth)),
          length_(static_cast<std::uint32_t>(job.phase->data.access.transfer)),
          buffers_(depth_, base, length_, job.writes, job.reads, job.verify),
          channel_(job.backend->make(setup())),
          time_(make_time(clock)) {
        meter_.task = job.task;
    }

    void run() override;

 private:
    backends::ChannelSetup setup() const {
        backends::ChannelSetup setup;
        setup.io = &job_.phase->data.io;
        setup.paced = &job_.phase->data.paced;
        setup.task = job_.task;
        setup.tasks = job_.tasks;
        setup.max_length = length_;
        setup.areas = buffers_.areas();
        setup.mpi = job_.mpi;
        setup.shared_file = job_.shared_file;
        return setup;
    }
    Time make_time(const meters::Clock& clock) const;

    /// Time without what verification took: that is never part of a rate.
    std::uint64_t now() const noexcept { return time_.raw() - paused_; }
    std::int64_t phase_ns(std::uint64_t tick) const noexcept {
        return tick <= origin_ ? 0 : static_cast<std::int64_t>(time_.duration_ns(tick - origin_));
    }

    void begin();
    bool run_files(std::uint64_t pass);
    bool run_file(const FileJob& file, std::uint64_t pass);
    bool open(const FileJob& file, std::uint64_t pass);
    bool move(const FileJob& file, std::uint64_t pass);
    bool sync_and_close(const FileJob& file, bool more);
    End move_one_by_one(const FileJob& file, std::uint64_t from, std::uint64_t to, std::uint64_t pass);
    End move_queued(const FileJob& file, std::uint64_t from, std::uint64_t to, std::uint64_t pass);
    bool another_pass() const;
    void after_stonewall();
    /// Barrier between open, transfer and close (barrier = "intra"): exactly two a stream, also when it failed.
    bool meet_between() {
        if (!job_.intra_barriers || met_ == 2) {
            return true;
        }
        ++met_;
        return team_.meet(job_.stream);
    }

    void choose(std::span<Entry> batch, std::uint64_t first, std::uint64_t pass) const noexcept;
    std::int64_t finish_short(Operation operation, std::int64_t moved) noexcept;
    void account(bool write, std::uint64_t from, std::uint64_t to) noexcept;
    bool event(std::uint64_t from, std::uint64_t to) noexcept;
    bool told_to_stop() const noexcept {
        return control_.stop.load(std::memory_order_relaxed) != 0 ||
               (first_done_ && control_.first_done.load(std::memory_order_relaxed) != 0);
    }
    void verify(const FileJob& file, std::uint64_t index, const Operation& operation, std::int64_t got);
    void fail(const FileJob& file, const char* what, int code, std::uint64_t offset) noexcept;
    void fail_in_words(const char* sentence) noexcept;
    void report(const std::string& path, const char* what, int code, std::uint64_t offset,
                const std::string& text) noexcept;

    const StreamJob& job_;
    ranks::Team& team_;
    ranks::NodeControl& control_;
    StreamMeter& meter_;
    std::size_t depth_;
    std::uint32_t length_;
    Buffers buffers_;
    std::unique_ptr<backends::Channel> channel_;
    Time time_;

    meters::Slices slices_;
    std::uint64_t origin_ = 0, paused_ = 0, limit_ = never, event_ = never, min_time_ = 0;
    std::uint64_t done_ = 0;        ///< operations, all passes and files
    std::uint64_t target_ = never;  ///< operations to reach after the stonewall
    std::uint64_t bytes_ = 0;
    bool wall_passed_ = false, worn_out_ = false, failed_ = false, first_done_ = false;
    int met_ = 0;
};

template <>
MachineTime DataStream<MachineTime>::make_time(const meters::Clock& clock) const {
    return {clock, control_};
}
template <>
ChannelTime DataStream<ChannelTime>::make_time(const meters::Clock&) const {
    return ChannelTime(*channel_);
}

template <class Time>
void DataStream<Time>::begin() {
    channel_->begin();
    origin_ = time_.origin();
    const plan::Stop& stop = job_.phase->stop;
    if (job_.timed) {
        const auto at = [this](plan::Nanoseconds ns) {
            return origin_ + time_.ticks_of(static_cast<std::uint64_t>(ns));
        };
        limit_ = stop.time ? at(*stop.time) : stop.stonewall ? at(*stop.stonewall) : never;
        min_time_ = stop.min_time ? at(*stop.min_time) : 0;
        first_done_ = stop.first_done;
    }
    slices_.begin(meter_.slice_bytes(), meter_.slice_operations(job_.max_slices),
                  static_cast<std::uint32_t>(job_.max_slices), origin_,
                  time_.ticks_of(static_cast<std::uint64_t>(job_.slice_ns)));
    event_ = std::min(limit_, slices_.end_tick());
}

template <class Time>
void DataStream<Time>::run() {
    begin();
    const meters::CpuTime before = meters::thread_cpu();
    meter_.live.active.store(1, std::memory_order_relaxed);
    std::uint64_t pass = 0;
    while (run_files(pass) && another_pass()) {
        ++pass;
    }
    if (job_.phase->stop.wearout && job_.timed && !worn_out_) {
        after_stonewall();  // the others wait for this task's count
    }
    while (job_.intra_barriers && met_ < 2 && meet_between()) {
    }
    const meters::CpuTime after = meters::thread_cpu();
    meter_.user_ns = after.user_ns - before.user_ns;
    meter_.system_ns = after.system_ns - before.system_ns;
    meter_.finished_ns = phase_ns(now());
    meter_.live.active.store(0, std::memory_order_relaxed);
    if (first_done_ && !failed_) {
        control_.first_done.store(1, std::memory_order_relaxed);
    }
    if (!wall_passed_) {
        meter_.stonewall_bytes = bytes_;
        meter_.stonewall_operations = done_;
    }
    meter_.wall_passed = wall_passed_;
    meter_.slices_used = slices_.used();
    meter_.slices_doublings = slices_.doublings();
}

template <class Time>
bool DataStream<Time>::another_pass() const {
    if (failed_ || told_to_stop() || !job_.timed || wall_passed_ || done_ == 0) {
        return false;
    }
    return job_.phase->stop.time.has_value() || now() < min_time_;
}

/// One pass over all files of the stream. False when the stream is to end.
template <class Time>
bool DataStream<Time>::run_files(std::uint64_t pass) {
    for (std::uint64_t k = 0; k < job_.files; ++k) {
        try {
            if (!run_file(job_.file(k), pass)) {
                return false;
            }
        } catch (const std::exception& error) {
            fail_in_words(error.what());
            return false;
        }
    }
    return true;
}

template <class Time>
bool DataStream<Time>::run_file(const FileJob& file, std::uint64_t pass) {
    const bool reopen = job_.files > 1;
    if ((pass == 0 || reopen) && !open(file, pass)) {
        return false;
    }
    if (!meet_between()) {
        return false;
    }
    const bool whole = move(file, pass);
    const bool more = whole && !reopen && another_pass();
    if (!more && !meet_between()) {
        return false;
    }
    const bool closed = sync_and_close(file, more);
    if (whole && closed && pass == 0) {
        ++meter_.files_done;
    }
    return whole && closed;
}

template <class Time>
bool DataStream<Time>::open(const FileJob& file, std::uint64_t pass) {
    backends::OpenRequest request;
    request.path = file.path;
    request.write = job_.writes;
    request.read = job_.reads;
    request.create = file.create;
    request.truncate = file.truncate && pass == 0;
    request.exclusive = file.exclusive && pass == 0;
    request.size = file.size;
    request.blocks = {file.geometry.first(), file.geometry.contiguous(), file.geometry.repeat()};
    const std::uint64_t from = now();
    const int result = channel_->open(0, request);
    const std::uint64_t to = now();
    meter_.part[meters::part_open].add(phase_ns(from), phase_ns(to));
    if (result < 0) {
        fail(file, "open", -result, 0);
        return false;
    }
    meter_.histogram[meters::kind_open].add(time_.duration_ns(to - from));
    if (job_.writes) {
        buffers_.set_origin({file.number, job_.generation});
    }
    return true;
}

/// The operations of one file. True when all that were asked are done.
template <class Time>
bool DataStream<Time>::move(const FileJob& file, std::uint64_t pass) {
    const std::uint64_t from = now();
    std::uint64_t next = 0;
    End end = End::finished;
    while (next < file.operations) {
        const std::uint64_t before = done_;
        const std::uint64_t to = next + std::min(file.operations - next, target_ - done_);
        end = depth_ > 1 ? move_queued(file, next, to, pass) : move_one_by_one(file, next, to, pass);
        next += done_ - before;
        if (end == End::limit && job_.phase->stop.wearout && !worn_out_) {
            after_stonewall();
            end = End::finished;
        }
        if (end != End::finished || done_ >= target_) {
            break;
        }
    }
    if (pass == 0) {
        meter_.next_operation += next;
    }
    if (job_.writes && job_.phase->data.io.fsync == plan::Fsync::end && !failed_) {
        const std::uint64_t sync_from = now();
        const int result = channel_->fsync(0);
        meter_.histogram[meters::kind_fsync].add(time_.duration_ns(now() - sync_from));
        if (result < 0) {
            fail(file, "fsync", -result, 0);
        }
    }
    meter_.part[meters::part_transfer].add(phase_ns(from), phase_ns(now()));
    return end == End::finished && next == file.operations && !failed_;
}

template <class Time>
bool DataStream<Time>::sync_and_close(const FileJob& file, bool more) {
    if (more) {
        return true;
    }
    bool good = true;
    if (job_.writes && job_.phase->data.io.fsync == plan::Fsync::end_timed_separately && !failed_) {
        const std::uint64_t from = now();
        const int result = channel_->fsync(0);
        const std::uint64_t to = now();
        meter_.part[meters::part_fsync].add(phase_ns(from), phase_ns(to));
        meter_.histogram[meters::kind_fsync].add(time_.duration_ns(to - from));
        if (result < 0) {
            fail(file, "fsync", -result, 0);
            good = false;
        }
    }
    const std::uint64_t from = now();
    const int result = channel_->close(0);
    const std::uint64_t to = now();
    meter_.part[meters::part_close].add(phase_ns(from), phase_ns(to));
    meter_.histogram[meters::kind_close].add(time_.duration_ns(to - from));
    if (result < 0) {
        fail(file, "close", -result, 0);
        good = false;
    }
    return good;
}

/// After the deadline all tasks meet once, learn the count of the fastest, and go on to it.
template <class Time>
void DataStream<Time>::after_stonewall() {
    worn_out_ = true;
    std::uint64_t seen = control_.wearout_target.load();
    while (seen < done_ && !control_.wearout_target.compare_exchange_weak(seen, done_)) {
    }
    if (!team_.meet(job_.stream)) {
        return;
    }
    if (job_.stream == 0) {
        const std::uint64_t most = team_.maximum(control_.wearout_target.load());
        if (team_.place().leader()) {
            control_.wearout_target.store(most);
        }
    }
    if (!team_.meet(job_.stream)) {
        return;
    }
    target_ = std::max(control_.wearout_target.load(), done_);
    limit_ = never;
    event_ = slices_.end_tick();
}

template <class Time>
void DataStream<Time>::choose(std::span<Entry> batch, std::uint64_t first, std::uint64_t pass) const noexcept {
    if (!job_.reads || !job_.writes) {
        for (Entry& entry : batch) {
            entry.write = job_.writes;
        }
        return;
    }
    const auto threshold = static_cast<std::uint64_t>(job_.read_ratio * 0x1p53);
    const std::uint64_t key = patterns::mix64(job_.phase->data.access.seed + pass * 0x9e37U) ^
                              patterns::mix64(static_cast<std::uint64_t>(job_.task));
    for (std::size_t k = 0; k < batch.size(); ++k) {
        batch[k].write = (patterns::mix64(key + first + k) >> 11U) >= threshold;
    }
}

template <class Time>
inline void DataStream<Time>::account(bool write, std::uint64_t from, std::uint64_t to) noexcept {
    const unsigned kind = write ? meters::kind_write : meters::kind_read;
    meter_.histogram[kind].add(time_.duration_ns(to - from));
    meter_.bytes[kind] += length_;
    ++meter_.operations[kind];
    bytes_ += length_;
    ++done_;
    meter_.live.bytes.store(bytes_, std::memory_order_relaxed);
    meter_.live.operations.store(done_, std::memory_order_relaxed);
}

/// An operation ended at or after the end of the slice or the deadline. True when the deadline has passed.
template <class Time>
bool DataStream<Time>::event(std::uint64_t from, std::uint64_t to) noexcept {
    slices_.add(from, to, length_);
    event_ = std::min(limit_, slices_.end_tick());
    if (to < limit_ || wall_passed_) {
        return false;
    }
    wall_passed_ = true;
    // The operation that spans the deadline counts in proportion: known to a fraction of one operation.
    const std::uint64_t before = limit_ > from ? limit_ - from : 0;
    const auto part = to > from ? static_cast<std::uint64_t>(static_cast<uint128>(length_) * before / (to - from)) : 0;
    meter_.stonewall_bytes = bytes_ - length_ + part;
    meter_.stonewall_operations = done_ - 1 + (to == limit_ ? 1U : 0U);
    return true;
}

template <class Time>
End DataStream<Time>::move_one_by_one(const FileJob& file, std::uint64_t from, std::uint64_t to, std::uint64_t pass) {
    std::array<Entry, 256> entries;
    const bool collective = job_.phase->data.io.collective;
    Operation operation;
    operation.length = length_;
    for (std::uint64_t next = from; next < to;) {
        const std::span<Entry> batch(entries.data(), std::min<std::uint64_t>(entries.size(), to - next));
        file.geometry.fill(next, pass, batch);
        choose(batch, next, pass);
        std::uint64_t last = now();
        for (const Entry& entry : batch) {
            operation.offset = entry.offset;
            operation.write = entry.write;
            operation.buffer = entry.write ? buffers_.image(0).at(entry.offset, length_) : buffers_.read_buffer(0);
            std::int64_t moved = channel_->transfer(operation);
            if (moved != length_) [[unlikely]] {
                // A second try of a collective call would find nobody to call with.
                moved = collective ? moved : finish_short(operation, moved);
                if (moved < 0 || (moved < length_ && !job_.verify)) {
                    fail(file, entry.write ? "write" : "read", moved < 0 ? static_cast<int>(-moved) : ENODATA,
                         entry.offset);
                    if (collective) {
                        channel_->agree(true);
                    }
                    return End::stop;
                }
            }
            const std::uint64_t end = now();
            account(entry.write, last, end);
            bool passed = false;
            if (end < event_) [[likely]] {
                slices_.add_inside(length_);
            } else {
                passed = event(last, end);
            }
            if (job_.verify && !entry.write) {
                verify(file, next + static_cast<std::uint64_t>(&entry - batch.data()), operation, moved);
            }
            last = end;
            const bool leave = passed || told_to_stop();
            if (collective ? channel_->agree(leave) : leave) [[unlikely]] {
                return told_to_stop() || failed_ ? End::stop : End::limit;
            }
        }
        next += batch.size();
    }
    return End::finished;
}

template <class Time>
End DataStream<Time>::move_queued(const FileJob& file, std::uint64_t from, std::uint64_t to, std::uint64_t pass) {
    struct Slot {
        Operation operation;
        std::uint64_t start = 0, index = 0;
    };
    std::vector<Slot> slots(depth_);
    std::vector<std::uint32_t> free(depth_);
    std::vector<backends::Completion> done(depth_);
    for (std::size_t i = 0; i < depth_; ++i) {
        free[i] = static_cast<std::uint32_t>(depth_ - 1 - i);
    }
    std::array<Entry, 64> entries;
    std::span<Entry> batch;
    std::size_t used = 0;
    End end = End::finished;
    std::uint64_t next = from;
    std::size_t in_flight = 0;
    while (next < to || in_flight > 0) {
        const std::uint64_t submitted = now();
        while (end == End::finished && next < to && !free.empty()) {
            if (used == batch.size()) {
                batch = {entries.data(), std::min<std::uint64_t>(entries.size(), to - next)};
                file.geometry.fill(next, pass, batch);
                choose(batch, next, pass);
                used = 0;
            }
            const Entry& entry = batch[used++];
            Slot& slot = slots[free.back()];
            slot.operation = {.offset = entry.offset,
                              .buffer = nullptr,
                              .length = length_,
                              .file = 0,
                              .write = entry.write,
                              .reserved = 0,
                              .slot = free.back()};
            slot.operation.buffer =
                entry.write ? buffers_.image(free.back()).at(entry.offset, length_) : buffers_.read_buffer(free.back());
            slot.start = submitted;
            slot.index = next++;
            if (!channel_->submit(slot.operation)) {
                fail(file, "submit", EAGAIN, entry.offset);
                return End::stop;
            }
            free.pop_back();
            ++in_flight;
        }
        if (in_flight == 0) {
            break;
        }
        const std::size_t count = channel_->reap(done);
        if (count == 0) {
            fail(file, "wait for completions", EIO, 0);
            return End::stop;
        }
        const std::uint64_t ended = now();
        for (std::size_t k = 0; k < count; ++k) {
            const Slot& slot = slots[done[k].slot];
            std::int64_t moved = done[k].result;
            free.push_back(done[k].slot);
            --in_flight;
            if (failed_) {
                continue;  // drained, not counted
            }
            if (moved != length_) [[unlikely]] {
                moved = finish_short(slot.operation, moved);
                if (moved < 0 || (moved < length_ && !job_.verify)) {
                    fail(file, slot.operation.write ? "write" : "read", moved < 0 ? static_cast<int>(-moved) : ENODATA,
                         slot.operation.offset);
                    end = End::stop;
                    continue;
                }
            }
            account(slot.operation.write, slot.start, ended);
            if (ended < event_ && slot.start >= slices_.start_tick()) [[likely]] {
                slices_.add_inside(length_);
            } else if (event(slot.start, ended)) {
                end = End::limit;
            }
            if (job_.verify && !slot.operation.write) {
                verify(file, slot.index, slot.operation, moved);
            }
        }
        if (end == End::finished && told_to_stop()) {
            end = End::stop;
        }
    }
    return end;
}

/// Continues a call that moved less than asked. Bytes moved in all (short only at the end of the file), or -errno.
template <class Time>
std::int64_t DataStream<Time>::finish_short(Operation operation, std::int64_t moved) noexcept {
    std::int64_t total = 0;
    while (moved > 0 && total + moved < length_) {
        ++meter_.short_operations;
        total += moved;
        operation.offset += static_cast<std::uint64_t>(moved);
        operation.buffer += moved;
        operation.length -= static_cast<std::uint32_t>(moved);
        moved = channel_->transfer(operation);
    }
    return moved < 0 ? moved : total + moved;
}

template <class Time>
void DataStream<Time>::verify(const FileJob& file, std::uint64_t index, const Operation& operation, std::int64_t got) {
    const std::uint64_t from = time_.raw();
    std::uint64_t generation = 0;
    for (const Written& written : file.written) {
        if (index < written.operations) {
            generation = written.generation;
            break;
        }
    }
    payload::Image& expected = buffers_.expected();
    expected.set_origin({file.number, generation});
    meter_.checked_bytes += operation.length;
    const auto wrong = payload::compare(expected, operation.buffer, operation.offset, operation.length,
                                        static_cast<std::uint64_t>(std::max<std::int64_t>(0, got)));
    if (wrong) {
        ++meter_.mismatches;
        report(file.path, "verify", 0, wrong->offset,
               std::string(payload::text(wrong->kind)) + ": " + wrong->text + " (expected: written by task " +
                   std::to_string(job_.writer) + ", generation " + std::to_string(generation) + ")");
    }
    const std::uint64_t spent = time_.raw() - from;
    paused_ += spent;
    meter_.verify_ns += static_cast<std::int64_t>(time_.duration_ns(spent));
}

template <class Time>
void DataStream<Time>::fail(const FileJob& file, const char* what, int code, std::uint64_t offset) noexcept {
    failed_ = true;
    ++meter_.failed;
    report(file.path, what, code, offset, {});
    std::uint32_t running = 0;
    control_.stop.compare_exchange_strong(running, ranks::NodeControl::quit_error);
}

template <class Time>
void DataStream<Time>::fail_in_words(const char* sentence) noexcept {
    failed_ = true;
    ++meter_.failed;
    report({}, "prepare", 0, 0, sentence);
    std::uint32_t running = 0;
    control_.stop.compare_exchange_strong(running, ranks::NodeControl::quit_error);
}

template <class Time>
void DataStream<Time>::report(const std::string& path, const char* what, int code, std::uint64_t offset,
                              const std::string& text) noexcept {
    const std::uint32_t place = control_.error_count.fetch_add(1);
    if (place >= ranks::NodeControl::max_errors) {
        return;
    }
    ranks::ErrorSlot& slot = control_.errors[place];
    slot.state.store(1);
    slot.task = job_.task;
    slot.code = code;
    slot.offset = offset;
    slot.at_ns = phase_ns(now());
    std::snprintf(slot.what, sizeof slot.what, "%s", what);
    std::snprintf(slot.path, sizeof slot.path, "%s", path.c_str());
    std::snprintf(slot.text, sizeof slot.text, "%s", text.c_str());
    slot.state.store(2);
}

}  // namespace

std::unique_ptr<Stream> Stream::make(const StreamJob& job, const payload::Base& base, ranks::Team& team,
                                     const meters::Clock& clock, StreamMeter& meter) {
    if (job.backend->traits.virtual_time && job.phase->data.paced.virtual_clock) {
        return std::make_unique<DataStream<ChannelTime>>(job, base, team, clock, meter);
    }
    return std::make_unique<DataStream<MachineTime>>(job, base, team, clock, meter);
}

}  // namespace sonde::workloads
