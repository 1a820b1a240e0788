// SPDX-License-Identifier: Apache-2.0
#include "workloads/cycle_stream.hpp"

#include <cerrno>

namespace sonde::workloads {

template <class Time>
CycleStream<Time>::CycleStream(const StreamJob& job, ranks::Team& team, const meters::Clock& clock,
                               meters::StreamMeter& meter, std::unique_ptr<backends::Channel> channel,
                               std::unique_ptr<Buffers> buffers)
    : TimedStream<Time>(job, team, clock, meter, std::move(channel)),
      tree_(*job.tree),
      meta_(*job.phase->meta),
      name_operations_(*this->channel_->name_operations()),
      buffers_(std::move(buffers)),
      turns_(tree_.parts.empty() ? 0 : tree_.shape.copies()),
      length_(static_cast<std::uint32_t>(meta_.write)) {
    // Packets begin at pages, as O_DIRECT wants it.
    constexpr std::size_t page = 4096;
    const std::size_t each = (length_ + page - 1) / page * page;
    memory_.resize(2 * each + page);
    std::byte* first = memory_.data() + (page - reinterpret_cast<std::uintptr_t>(memory_.data()) % page) % page;
    packets_[0] = {first, length_};
    packets_[1] = {first + each, length_};
}

/// IOR's content for an item: made for its task once, and marked with its number.
template <class Time>
std::span<const std::byte> CycleStream<Time>::packet(int owner, std::uint64_t number, bool for_create) {
    const plan::Payload& settings = this->job_.phase->data.payload;
    const payload::IorPacket packet{settings.kind, static_cast<std::uint32_t>(settings.seed),
                                    static_cast<std::uint32_t>(owner)};
    const std::span<std::byte> bytes = packets_[for_create ? 1 : 0];
    if (owners_[for_create ? 1 : 0] != owner) {
        payload::fill_packet(packet, bytes.data(), length_);
        owners_[for_create ? 1 : 0] = owner;
    }
    payload::set_packet_offset(packet, bytes.data(), length_, number);
    return bytes;
}

template <class Time>
void CycleStream<Time>::prepare(std::uint64_t round) {
    for (std::uint64_t copy = 0; copy < turns_.size(); ++copy) {
        set_turn(tree_, meta_, this->job_.task, this->job_.tasks, round, copy, turns_[copy]);
    }
}

/// Short waits spin: a sleep takes longer than what they are in proportion to.
template <class Time>
void CycleStream<Time>::wait_for(std::uint64_t ticks) {
    const auto wait = static_cast<std::uint64_t>(static_cast<double>(ticks) * meta_.cycle.wait);
    constexpr std::uint64_t worth_sleeping_ns = 10'000'000;
    const std::uint64_t ns = this->time_.duration_ns(wait);
    if (this->channel_->advance_virtual_time(static_cast<std::int64_t>(ns))) {
        return;
    }
    if (ns >= worth_sleeping_ns) {
        const timespec length{static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
        ::nanosleep(&length, nullptr);
        return;
    }
    const std::uint64_t until = this->now() + wait;
    while (this->now() < until && !this->job_.backend->traits.virtual_time) {
    }
}

template <class Time>
template <class Call>
bool CycleStream<Time>::timed(unsigned kind, const char* operation, const std::string& path, std::uint32_t length,
                              Call call) {
    const std::uint64_t from = this->now();
    const std::int64_t result = call();
    const std::uint64_t to = this->now();
    if (result < 0) [[unlikely]] {
        this->settle();
        this->fail(path, operation, static_cast<int>(-result), 0);
        return false;
    }
    this->meter_.histogram(kind).add(this->time_.duration_ns(to - from));
    ++this->done_;
    this->bytes_ += length;
    deadline_ = this->place(from, to, length) || deadline_;
    if (meta_.cycle.wait > 0) {
        wait_for(to - from);
    }
    return true;
}

template <class Time>
void CycleStream<Time>::check(const CycleTurn& turn, std::int64_t got) {
    const std::uint64_t from = this->time_.raw();
    this->meter_.checked_bytes += length_;
    const std::span<const std::byte> right = packet(turn.taken_of, turn.taken_number, false);
    const std::byte* data = buffers_->read_buffer(0);
    const auto first = std::mismatch(right.begin(), right.begin() + got, data).first;
    const auto offset = static_cast<std::uint64_t>(first - right.begin());
    if (offset < length_) {
        ++this->meter_.mismatches;
        this->report(turn.old_path, "verify", 0, offset,
                     std::string(got < length_ && offset == static_cast<std::uint64_t>(got)
                                     ? "nothing: the file ends there"
                                     : "other bytes than IOR's content for this file") +
                         " (written for task " + std::to_string(turn.taken_of) + ")");
    }
    const std::uint64_t spent = this->time_.raw() - from;
    this->paused_ += spent;
    this->meter_.verify_ns += static_cast<std::int64_t>(this->time_.duration_ns(spent));
}

template <class Time>
bool CycleStream<Time>::take_and_make(const CycleTurn& turn) {
    const backends::StatOptions options{meta_.lookup != plan::StatCall::lstat, meta_.lookup == plan::StatCall::statx,
                                        meta_.fields, meta_.freshness};
    const char* path = tree_.relative(turn.old_path);
    if (!timed(meters::kind_stat, "stat", turn.old_path, 0,
               [&]() -> std::int64_t { return name_operations_.stat_entry(tree_.directory, path, options); })) {
        return false;
    }
    std::int64_t got = 0;
    if (!timed(meters::kind_read, "read", turn.old_path, length_, [&] {
            got = name_operations_.read_file(tree_.directory, path,
                                             {buffers_->read_buffer(0), static_cast<std::size_t>(length_)});
            // With verification a short file is a wrong one, and said so there.
            return got >= 0 && got < length_ && !this->job_.verify ? -std::int64_t{ENODATA} : got;
        })) {
        return false;
    }
    this->meter_.bytes[0] += length_;
    if (this->job_.verify) {
        check(turn, got);
    }
    if (meta_.cycle.keep) {
        return true;
    }
    if (!timed(meters::kind_remove, "remove", turn.old_path, 0,
               [&]() -> std::int64_t { return name_operations_.remove_file(tree_.directory, path); })) {
        return false;
    }
    backends::NewFileOptions file;
    file.exclusive = meta_.exclusive;
    file.fsync = meta_.fsync;
    file.content = packet(turn.made_for, turn.made_number, true);
    const bool is_created = timed(meters::kind_create, "create", turn.new_path, length_, [&]() -> std::int64_t {
        return name_operations_.make_file(tree_.directory, tree_.relative(turn.new_path), file);
    });
    this->meter_.bytes[1] += is_created ? length_ : 0;
    return is_created;
}

template <class Time>
bool CycleStream<Time>::round(std::uint64_t number) {
    prepare(number);
    for (const CycleTurn& turn : turns_) {
        if (!take_and_make(turn) || this->told_to_stop()) {
            this->settle();
            return false;
        }
    }
    this->settle();
    return !deadline_;
}

template <class Time>
bool CycleStream<Time>::run_pass(std::uint64_t /*pass*/) {
    const std::uint64_t from = this->now();
    const std::uint64_t rounds = turns_.empty() ? 0 : meta_.window->count;
    std::uint64_t next = 0;
    bool good = true;
    while (good && next < rounds && this->done_ < this->target_) {
        good = round(next);
        next += good || deadline_ ? 1 : 0;
        if (!good && deadline_ && !this->failed_ && !this->told_to_stop() && this->wears_out()) {
            deadline_ = false;
            this->after_stonewall();  // all rounds have the same number of calls, so all end with the same round
            good = true;
        }
    }
    this->meter_.next_operation = next * calls_of_round();
    this->meter_.files_done = next * turns_.size();
    this->meter_.file_operations = this->done_;
    this->meter_.parts_of_work[meters::part_transfer].add(this->phase_ns(from), this->phase_ns(this->now()));
    return good && next == rounds && !this->failed_;
}

template class CycleStream<MachineTime>;
template class CycleStream<ChannelTime>;

}  // namespace sonde::workloads
