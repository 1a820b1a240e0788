// SPDX-License-Identifier: Apache-2.0
// Loops for all operations, one after the other and queued: one clock reading an operation, no allocation, no lock, no
// formatted text. Those that need least have a loop of their own (plain_moves.cpp).
#include "payload/compare.hpp"
#include "workloads/data_stream.hpp"

#include <array>
#include <cerrno>
#include <vector>

namespace sonde::workloads {

using backends::IoRequest;

template <class Time>
void DataStream<Time>::choose_directions(std::span<bool> writes, const FileJob& file, std::uint64_t first,
                                         std::uint64_t pass) const noexcept {
    if (!job_.reads || !job_.writes) {
        std::fill(writes.begin(), writes.end(), job_.writes);
        return;
    }
    const auto threshold = static_cast<std::uint64_t>(job_.read_ratio * 0x1p53);
    // The key has the number of the file: without it, a task with one operation in each of many files would only read
    // or only write.
    const std::uint64_t key =
        patterns::mix64(job_.phase->data.access.seed + pass * 0x9e37U) ^
        patterns::mix64(patterns::mix64(file.file_number) + static_cast<std::uint64_t>(job_.task));
    for (std::size_t k = 0; k < writes.size(); ++k) {
        writes[k] = (patterns::mix64(key + first + k) >> 11U) >= threshold;
    }
}

template <class Time>
inline void DataStream<Time>::count_transfers(bool write, std::uint64_t from, std::uint64_t to,
                                              std::uint32_t length) noexcept {
    const unsigned kind = write ? meters::kind_write : meters::kind_read;
    const std::uint64_t ns = time_.duration_ns(to - from);
    histogram_[kind]->count_in_bucket(ns);
    ++unpublished_.operations[kind];
    unpublished_.bytes[kind] += length;
    unpublished_.sum_ns[kind] += ns;
    unpublished_.min_ns[kind] = std::min(unpublished_.min_ns[kind], ns);
    unpublished_.max_ns[kind] = std::max(unpublished_.max_ns[kind], ns);
    bytes_done_ += length;
    ++operations_done_;
}

template <class Time>
void DataStream<Time>::publish_all_counts() noexcept {
    this->publish_counts();
    for (unsigned kind = 0; kind < 2; ++kind) {
        meter_.bytes[kind] += unpublished_.bytes[kind];
        meter_.operations[kind] += unpublished_.operations[kind];
        meter_.histogram(kind).add_summary(unpublished_.sum_ns[kind], unpublished_.min_ns[kind],
                                           unpublished_.max_ns[kind]);
    }
    unpublished_ = UnpublishedCounts{};
}

template <class Time>
typename DataStream<Time>::LoopEnd DataStream<Time>::run_synchronous_loop(const FileJob& file, std::uint64_t from,
                                                                          std::uint64_t to, std::uint64_t pass) {
    const plan::Io& io = job_.phase->data.io;
    const bool simple = !io.collective && io.pause == 0 && !io.is_limited() && !file.geometry.has_sizes();
    if (simple && job_.writes && !job_.reads && buffers_->image(0).is_stamped_only()) {
        return run_stamped_write_loop(file, from, to, pass);
    }
    if (simple && !job_.writes && !job_.verify) {
        return run_unchecked_read_loop(file, from, to, pass);
    }
    return run_general_loop(file, from, to, pass);
}

template <class Time>
typename DataStream<Time>::LoopEnd DataStream<Time>::run_general_loop(const FileJob& file, std::uint64_t from,
                                                                      std::uint64_t to, std::uint64_t pass) {
    std::array<std::uint64_t, 256> offsets;
    std::array<std::uint32_t, 256> lengths;
    std::array<bool, 256> writes;
    const bool collective = job_.phase->data.io.collective;
    const bool check = job_.verify && !file.generations.empty();
    payload::PayloadImage* image = job_.writes ? &buffers_->image(0) : nullptr;
    std::byte* const read_buffer = job_.reads ? buffers_->read_buffer(0) : nullptr;
    backends::Channel& channel = *channel_;
    const plan::Nanoseconds pause = job_.phase->data.io.pause;
    const bool limited = job_.phase->data.io.is_limited();
    IoRequest operation;
    for (std::uint64_t next = from; next < to;) {
        const std::size_t count = std::min<std::uint64_t>(offsets.size(), to - next);
        file.geometry.fill_offsets(next, pass, {offsets.data(), count}, {lengths.data(), count});
        choose_directions({writes.data(), count}, file, next, pass);
        std::uint64_t last = now();
        for (std::size_t k = 0; k < count; ++k) {
            const bool write = writes[k];
            const std::uint32_t length = lengths[k];
            std::uint64_t due = last;
            if (limited) [[unlikely]] {
                due = pacer_.begin_operation(last, length);
                publish_all_counts();
                if (!this->wait_until(due)) {
                    return should_stop() ? LoopEnd::stop : LoopEnd::deadline;
                }
                last = now();
            }
            operation.length = length;
            operation.offset = offsets[k];
            operation.is_write = write;
            operation.buffer = write ? image->content_at(operation.offset, length) : read_buffer;
            std::int64_t moved = channel.transfer(operation);
            if (moved != length) [[unlikely]] {
                // A second try of a collective call would find nobody to call with.
                if (!collective && job_.phase->data.io.continue_short) {
                    moved = continue_short_transfer(operation, moved);
                }
                if (moved < 0 || (moved < length && !check)) {
                    fail_operation(file.path, write ? "write" : "read", errno_of_transfer(moved, write),
                                   operation.offset);
                    if (collective) {
                        channel.agree_on_stop(true);
                    }
                    return LoopEnd::stop;
                }
            }
            const std::uint64_t end = now();
            count_transfers(write, due, end, length);
            const bool passed = count_operation(last, end, length);
            if (current_target_counter_ != nullptr) [[unlikely]] {
                current_target_counter_->add(write ? meters::kind_write : meters::kind_read, operation.offset, last,
                                             end, time_.duration_ns(end - last));
            }
            if (check && !write) {
                verify(file, next + k, operation, moved);
            }
            last = end;
            if (pause != 0) [[unlikely]] {
                last = this->pause(pause);
            }
            const bool leave = passed || should_stop();
            if (collective ? channel.agree_on_stop(leave) : leave) [[unlikely]] {
                return should_stop() || failed_ ? LoopEnd::stop : LoopEnd::deadline;
            }
        }
        next += count;
        publish_all_counts();
    }
    return LoopEnd::finished;
}

template <class Time>
typename DataStream<Time>::LoopEnd DataStream<Time>::run_queued_loop(const FileJob& file, std::uint64_t from,
                                                                     std::uint64_t to, std::uint64_t pass) {
    struct QueueSlot {
        IoRequest operation;
        std::uint64_t start = 0, index = 0;
        std::uint32_t moved = 0;  ///< by calls of this operation that fell short
    };
    std::vector<QueueSlot> slots(depth_);
    std::vector<std::uint32_t> free(depth_);
    std::vector<backends::Completion> done(depth_);
    for (std::size_t i = 0; i < depth_; ++i) {
        free[i] = static_cast<std::uint32_t>(depth_ - 1 - i);
    }
    const bool check = job_.verify && !file.generations.empty();
    std::array<std::uint64_t, 64> offsets;
    std::array<std::uint32_t, 64> lengths;
    std::array<bool, 64> writes;
    std::size_t ahead = 0, used = 0;
    LoopEnd end = LoopEnd::finished;
    std::uint64_t next = from;
    std::size_t in_flight = 0;
    while (next < to || in_flight > 0) {
        const std::uint64_t submitted = now();
        while (end == LoopEnd::finished && next < to && !free.empty()) {
            if (used == ahead) {
                ahead = std::min<std::uint64_t>(offsets.size(), to - next);
                file.geometry.fill_offsets(next, pass, {offsets.data(), ahead}, {lengths.data(), ahead});
                choose_directions({writes.data(), ahead}, file, next, pass);
                used = 0;
            }
            const std::uint64_t offset = offsets[used];
            const std::uint32_t length = lengths[used];
            const bool write = writes[used++];
            QueueSlot& slot = slots[free.back()];
            slot.operation = {.offset = offset,
                              .buffer = nullptr,
                              .length = length,
                              .file_index = 0,
                              .is_write = write,
                              .reserved = 0,
                              .slot = free.back()};
            slot.operation.buffer =
                write ? buffers_->image(free.back()).content_at(offset, length) : buffers_->read_buffer(free.back());
            slot.start = submitted;
            slot.index = next++;
            slot.moved = 0;
            if (!channel_->submit(slot.operation)) {
                fail_operation(file.path, "submit", EAGAIN, offset);
                return LoopEnd::stop;
            }
            free.pop_back();
            ++in_flight;
        }
        if (in_flight == 0) {
            break;
        }
        const std::size_t count = channel_->reap(done);
        if (count == 0) {
            fail_operation(file.path, "wait for completions", EIO, 0);
            return LoopEnd::stop;
        }
        const std::uint64_t ended = now();
        for (std::size_t k = 0; k < count; ++k) {
            QueueSlot& slot = slots[done[k].slot];
            std::int64_t moved = done[k].result;
            const std::uint32_t length = slot.operation.length;
            if (moved != length) [[unlikely]] {
                if (moved > 0 && slot.moved + moved < length && !failed_ && job_.phase->data.io.continue_short) {
                    // Through the queue again: a call that waits could meet another operation's completion.
                    ++meter_.short_operations;
                    slot.moved += static_cast<std::uint32_t>(moved);
                    if (channel_->submit(remaining_part(slot.operation, slot.moved))) {
                        continue;
                    }
                    moved = -EAGAIN;
                }
                moved = moved < 0 ? moved : slot.moved + moved;
            }
            free.push_back(done[k].slot);
            --in_flight;
            if (failed_) {
                continue;  // drained, not counted
            }
            if (moved != length) [[unlikely]] {
                if (moved < 0 || (moved < length && !check)) {
                    fail_operation(file.path, slot.operation.is_write ? "write" : "read",
                                   errno_of_transfer(moved, slot.operation.is_write), slot.operation.offset);
                    end = LoopEnd::stop;
                    continue;
                }
            }
            count_transfers(slot.operation.is_write, slot.start, ended, length);
            if (count_operation(slot.start, ended, length)) {
                end = LoopEnd::deadline;
            }
            if (current_target_counter_ != nullptr) [[unlikely]] {
                current_target_counter_->add(slot.operation.is_write ? meters::kind_write : meters::kind_read,
                                             slot.operation.offset, slot.start, ended,
                                             time_.duration_ns(ended - slot.start));
            }
            if (check && !slot.operation.is_write) {
                verify(file, slot.index, slot.operation, moved);
            }
        }
        if (end == LoopEnd::finished && should_stop()) {
            end = LoopEnd::stop;
        }
    }
    return end;
}

/// Compares 4 KiB by 4 KiB, because each may hold data of before this phase or of this phase.
template <class Time>
std::optional<payload::Mismatch> DataStream<Time>::compare_with_later_generation(const FileJob& file,
                                                                                 const IoRequest& operation,
                                                                                 std::uint64_t generation,
                                                                                 std::uint64_t got) noexcept {
    const auto writer = static_cast<std::uint32_t>(file.owner);
    payload::PayloadImage& expected = buffers_->expected();
    for (std::uint64_t begin = 0; begin < operation.length; begin += payload::granule_bytes) {
        const std::uint64_t length = std::min<std::uint64_t>(payload::granule_bytes, operation.length - begin);
        const std::uint64_t present = got > begin ? got - begin : 0;
        const auto compare_with = [&](std::uint64_t version) {
            expected.set_origin({file.file_number, version, writer});
            return payload::compare(expected, operation.buffer + begin, operation.offset + begin, length, present);
        };
        if (compare_with(job_.generation)) {
            if (auto wrong = compare_with(generation)) {
                return wrong;
            }
        }
    }
    return std::nullopt;
}

template <class Time>
void DataStream<Time>::verify(const FileJob& file, std::uint64_t index, const IoRequest& operation, std::int64_t got) {
    const std::uint64_t from = time_.read_ticks();
    std::uint64_t generation = 0;
    for (const WrittenGeneration& written : file.generations) {
        if (index < written.operation_count) {
            generation = written.generation;
            break;
        }
    }
    payload::PayloadImage& expected = buffers_->expected();
    expected.set_origin({file.file_number, generation, static_cast<std::uint32_t>(file.owner)});
    meter_.checked_bytes += operation.length;
    const auto present = static_cast<std::uint64_t>(std::max<std::int64_t>(0, got));
    auto wrong = payload::compare(expected, operation.buffer, operation.offset, operation.length, present);
    if (wrong && job_.writes) {
        wrong = compare_with_later_generation(file, operation, generation, present);
    }
    if (wrong) {
        ++meter_.mismatch_count;
        const int writer = file.find_writer(wrong->offset);
        const std::string by = writer < 0 ? "" : "written by task " + std::to_string(writer) + ", ";
        report_error(file.path, "verify", 0, wrong->offset,
                     std::string(payload::kind_name(wrong->kind)) + ": " + wrong->describe_mismatch +
                         " (expected: " + by + "generation " + std::to_string(generation) + ")");
    }
    const std::uint64_t spent = time_.read_ticks() - from;
    paused_ticks_ += spent;
    meter_.verify_ns += static_cast<std::int64_t>(time_.duration_ns(spent));
}

template class DataStream<MachineClock>;
template class DataStream<ChannelClock>;

}  // namespace sonde::workloads
