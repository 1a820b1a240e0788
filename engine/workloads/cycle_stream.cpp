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
      replacements_(tree_.parts.empty() ? 0 : tree_.shape.copies()),
      length_(static_cast<std::uint32_t>(meta_.write_bytes)) {
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
std::span<const std::byte> CycleStream<Time>::make_packet(int owner, std::uint64_t number, bool for_create) {
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
void CycleStream<Time>::prepare_round(std::uint64_t round) {
    for (std::uint64_t copy = 0; copy < replacements_.size(); ++copy) {
        set_item_replacement(tree_, meta_, this->job_.task, this->job_.tasks, round, copy, replacements_[copy]);
    }
}

/// Short waits spin: a sleep takes longer than what they are in proportion to.
template <class Time>
void CycleStream<Time>::wait_for(std::uint64_t ticks) {
    const auto wait = static_cast<std::uint64_t>(static_cast<double>(ticks) * meta_.cycle.wait_factor);
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
    while (this->now() < until && !this->job_.backend->traits.supports_virtual_time) {
    }
}

template <class Time>
template <class Call>
bool CycleStream<Time>::time_call(unsigned kind, const char* operation, const std::string& path, std::uint32_t length,
                                  Call call) {
    const std::uint64_t from = this->now();
    const std::int64_t result = call();
    const std::uint64_t to = this->now();
    if (result < 0) [[unlikely]] {
        this->publish_counts();
        this->fail_operation(path, operation, static_cast<int>(-result), 0);
        return false;
    }
    this->meter_.histogram(kind).add(this->time_.duration_ns(to - from));
    ++this->operations_done_;
    this->bytes_done_ += length;
    is_deadline_passed_ = this->count_operation(from, to, length) || is_deadline_passed_;
    if (meta_.cycle.wait_factor > 0) {
        wait_for(to - from);
    }
    return true;
}

template <class Time>
void CycleStream<Time>::verify_item(const ItemReplacement& turn, std::int64_t got) {
    const std::uint64_t from = this->time_.read_ticks();
    this->meter_.checked_bytes += length_;
    const std::span<const std::byte> right = make_packet(turn.old_owner, turn.old_number, false);
    const std::byte* data = buffers_->read_buffer(0);
    const auto first = std::mismatch(right.begin(), right.begin() + got, data).first;
    const auto offset = static_cast<std::uint64_t>(first - right.begin());
    if (offset < length_) {
        ++this->meter_.mismatch_count;
        this->report_error(turn.old_path, "verify", 0, offset,
                           std::string(got < length_ && offset == static_cast<std::uint64_t>(got)
                                           ? "nothing: the file ends there"
                                           : "other bytes than IOR's content for this file") +
                               " (written for task " + std::to_string(turn.old_owner) + ")");
    }
    const std::uint64_t spent = this->time_.read_ticks() - from;
    this->paused_ticks_ += spent;
    this->meter_.verify_ns += static_cast<std::int64_t>(this->time_.duration_ns(spent));
}

template <class Time>
bool CycleStream<Time>::replace_item(const ItemReplacement& turn) {
    const backends::StatOptions options{meta_.stat_call != plan::StatCall::lstat,
                                        meta_.stat_call == plan::StatCall::statx, meta_.statx_fields,
                                        meta_.statx_sync_flag};
    const char* path = tree_.to_relative_path(turn.old_path);
    if (!time_call(meters::kind_stat, "stat", turn.old_path, 0,
                   [&]() -> std::int64_t { return name_operations_.stat_entry(tree_.directory, path, options); })) {
        return false;
    }
    std::int64_t got = 0;
    if (!time_call(meters::kind_read, "read", turn.old_path, length_, [&] {
            got = name_operations_.read_file(tree_.directory, path,
                                             {buffers_->read_buffer(0), static_cast<std::size_t>(length_)});
            // With verification a short file is a wrong one, and said so there.
            return got >= 0 && got < length_ && !this->job_.verify ? -std::int64_t{ENODATA} : got;
        })) {
        return false;
    }
    this->meter_.bytes[0] += length_;
    if (this->job_.verify) {
        verify_item(turn, got);
    }
    if (meta_.cycle.inspects_only) {
        return true;
    }
    if (!time_call(meters::kind_remove, "remove", turn.old_path, 0,
                   [&]() -> std::int64_t { return name_operations_.remove_file(tree_.directory, path); })) {
        return false;
    }
    backends::NewFileOptions file;
    file.exclusive = meta_.exclusive;
    file.fsync = meta_.fsync;
    file.content = make_packet(turn.new_owner, turn.new_number, true);
    const bool is_created = time_call(meters::kind_create, "create", turn.new_path, length_, [&]() -> std::int64_t {
        return name_operations_.make_file(tree_.directory, tree_.to_relative_path(turn.new_path), file);
    });
    this->meter_.bytes[1] += is_created ? length_ : 0;
    return is_created;
}

template <class Time>
bool CycleStream<Time>::run_round(std::uint64_t number) {
    prepare_round(number);
    for (const ItemReplacement& turn : replacements_) {
        if (!replace_item(turn) || this->should_stop()) {
            this->publish_counts();
            return false;
        }
    }
    this->publish_counts();
    return !is_deadline_passed_;
}

template <class Time>
bool CycleStream<Time>::run_pass(std::uint64_t /*pass*/) {
    const std::uint64_t from = this->now();
    const std::uint64_t rounds = replacements_.empty() ? 0 : meta_.window->count;
    std::uint64_t next = 0;
    bool succeeded = true;
    while (succeeded && next < rounds && this->operations_done_ < this->wearout_target_) {
        succeeded = run_round(next);
        next += succeeded || is_deadline_passed_ ? 1 : 0;
        if (!succeeded && is_deadline_passed_ && !this->failed_ && !this->should_stop() && this->must_wear_out()) {
            is_deadline_passed_ = false;
            this->continue_to_wearout_target();  // all rounds have the same number of calls, so all end with the same
                                                 // round
            succeeded = true;
        }
    }
    this->meter_.next_operation = next * calls_per_round();
    this->meter_.completed_files = next * replacements_.size();
    this->meter_.file_operations = this->operations_done_;
    this->meter_.parts_of_work[meters::part_transfer].add(this->ns_since_phase_start(from),
                                                          this->ns_since_phase_start(this->now()));
    return succeeded && next == rounds && !this->failed_;
}

template class CycleStream<MachineClock>;
template class CycleStream<ChannelClock>;

}  // namespace sonde::workloads
