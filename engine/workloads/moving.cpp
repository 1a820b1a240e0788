// SPDX-License-Identifier: Apache-2.0
// Loops for all operations, one after the other and queued: one clock reading an operation, no allocation, no lock, no
// formatted text. Those that need least have a loop of their own (plain_moves.cpp).
#include "payload/compare.hpp"
#include "workloads/data_stream.hpp"

#include <time.h>
#include <array>
#include <cerrno>
#include <vector>

namespace sonde::workloads {

using backends::IoRequest;

namespace {

/// What is left of an operation when `moved` bytes of it are done.
IoRequest rest_of(IoRequest operation, std::uint32_t moved) noexcept {
    operation.offset += moved;
    operation.buffer += moved;
    operation.length -= moved;
    return operation;
}

}  // namespace

template <class Time>
void DataStream<Time>::choose(std::span<bool> writes, const FileJob& file, std::uint64_t first,
                              std::uint64_t pass) const noexcept {
    if (!job_.reads || !job_.writes) {
        std::fill(writes.begin(), writes.end(), job_.writes);
        return;
    }
    const auto threshold = static_cast<std::uint64_t>(job_.read_ratio * 0x1p53);
    // By file too: with one operation in each of many files, a task must not only read or only write.
    const std::uint64_t key = patterns::mix64(job_.phase->data.access.seed + pass * 0x9e37U) ^
                              patterns::mix64(patterns::mix64(file.number) + static_cast<std::uint64_t>(job_.task));
    for (std::size_t k = 0; k < writes.size(); ++k) {
        writes[k] = (patterns::mix64(key + first + k) >> 11U) >= threshold;
    }
}

template <class Time>
inline void DataStream<Time>::account(bool write, std::uint64_t from, std::uint64_t to) noexcept {
    const unsigned kind = write ? meters::kind_write : meters::kind_read;
    const std::uint64_t ns = time_.duration_ns(to - from);
    histogram_[kind]->count_one(ns);
    ++tally_.operations[kind];
    tally_.sum_ns[kind] += ns;
    tally_.min_ns[kind] = std::min(tally_.min_ns[kind], ns);
    tally_.max_ns[kind] = std::max(tally_.max_ns[kind], ns);
    bytes_ += length_;
    ++done_;
}

template <class Time>
void DataStream<Time>::settle_all() noexcept {
    this->settle();
    for (unsigned kind = 0; kind < 2; ++kind) {
        meter_.bytes[kind] += tally_.operations[kind] * length_;
        meter_.operations[kind] += tally_.operations[kind];
        meter_.histogram(kind).summarize(tally_.sum_ns[kind], tally_.min_ns[kind], tally_.max_ns[kind]);
    }
    tally_ = Tally{};
}

/// Does nothing for a while; the reading of the clock afterwards.
template <class Time>
std::uint64_t DataStream<Time>::idle(plan::Nanoseconds length) noexcept {
    if (channel_->idle(length)) {
        return now();
    }
    timespec remaining{length / 1'000'000'000, length % 1'000'000'000};
    while (nanosleep(&remaining, &remaining) != 0 && errno == EINTR && !told_to_stop()) {
    }
    return now();
}

template <class Time>
typename DataStream<Time>::End DataStream<Time>::move_one_by_one(const FileJob& file, std::uint64_t from,
                                                                 std::uint64_t to, std::uint64_t pass) {
    const bool simple = !job_.phase->data.io.collective && job_.phase->data.io.pause == 0;
    if (simple && job_.writes && !job_.reads && buffers_->image(0).plain()) {
        return plain_writes(file, from, to, pass);
    }
    if (simple && !job_.writes && !job_.verify) {
        return plain_reads(file, from, to, pass);
    }
    return one_by_one(file, from, to, pass);
}

template <class Time>
typename DataStream<Time>::End DataStream<Time>::one_by_one(const FileJob& file, std::uint64_t from, std::uint64_t to,
                                                            std::uint64_t pass) {
    std::array<std::uint64_t, 256> offsets;
    std::array<bool, 256> writes;
    const bool collective = job_.phase->data.io.collective;
    const bool check = job_.verify && !file.written.empty();
    payload::Image* image = job_.writes ? &buffers_->image(0) : nullptr;
    std::byte* const read_buffer = job_.reads ? buffers_->read_buffer(0) : nullptr;
    backends::Channel& channel = *channel_;
    const std::uint32_t length = length_;
    const plan::Nanoseconds pause = job_.phase->data.io.pause;
    IoRequest operation;
    operation.length = length;
    for (std::uint64_t next = from; next < to;) {
        const std::size_t count = std::min<std::uint64_t>(offsets.size(), to - next);
        file.geometry.fill(next, pass, {offsets.data(), count});
        choose({writes.data(), count}, file, next, pass);
        std::uint64_t last = now();
        for (std::size_t k = 0; k < count; ++k) {
            const bool write = writes[k];
            operation.offset = offsets[k];
            operation.write = write;
            operation.buffer = write ? image->at(operation.offset, length) : read_buffer;
            std::int64_t moved = channel.transfer(operation);
            if (moved != length) [[unlikely]] {
                // A second try of a collective call would find nobody to call with.
                moved = collective ? moved : finish_short(operation, moved);
                if (moved < 0 || (moved < length && !check)) {
                    fail(file.path, write ? "write" : "read", reason(moved, write), operation.offset);
                    if (collective) {
                        channel.agree(true);
                    }
                    return End::stop;
                }
            }
            const std::uint64_t end = now();
            account(write, last, end);
            const bool passed = place(last, end, length);
            if (counting_ != nullptr) [[unlikely]] {
                counting_->add(write ? meters::kind_write : meters::kind_read, operation.offset, last, end,
                               time_.duration_ns(end - last));
            }
            if (check && !write) {
                verify(file, next + k, operation, moved);
            }
            last = end;
            if (pause != 0) [[unlikely]] {
                last = idle(pause);
            }
            const bool leave = passed || told_to_stop();
            if (collective ? channel.agree(leave) : leave) [[unlikely]] {
                return told_to_stop() || failed_ ? End::stop : End::limit;
            }
        }
        next += count;
        settle_all();
    }
    return End::finished;
}

template <class Time>
typename DataStream<Time>::End DataStream<Time>::move_queued(const FileJob& file, std::uint64_t from, std::uint64_t to,
                                                             std::uint64_t pass) {
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
    const bool check = job_.verify && !file.written.empty();
    std::array<std::uint64_t, 64> offsets;
    std::array<bool, 64> writes;
    std::size_t ahead = 0, used = 0;
    End end = End::finished;
    std::uint64_t next = from;
    std::size_t in_flight = 0;
    while (next < to || in_flight > 0) {
        const std::uint64_t submitted = now();
        while (end == End::finished && next < to && !free.empty()) {
            if (used == ahead) {
                ahead = std::min<std::uint64_t>(offsets.size(), to - next);
                file.geometry.fill(next, pass, {offsets.data(), ahead});
                choose({writes.data(), ahead}, file, next, pass);
                used = 0;
            }
            const std::uint64_t offset = offsets[used];
            const bool write = writes[used++];
            QueueSlot& slot = slots[free.back()];
            slot.operation = {.offset = offset,
                              .buffer = nullptr,
                              .length = length_,
                              .file = 0,
                              .write = write,
                              .reserved = 0,
                              .slot = free.back()};
            slot.operation.buffer =
                write ? buffers_->image(free.back()).at(offset, length_) : buffers_->read_buffer(free.back());
            slot.start = submitted;
            slot.index = next++;
            slot.moved = 0;
            if (!channel_->submit(slot.operation)) {
                fail(file.path, "submit", EAGAIN, offset);
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
            fail(file.path, "wait for completions", EIO, 0);
            return End::stop;
        }
        const std::uint64_t ended = now();
        for (std::size_t k = 0; k < count; ++k) {
            QueueSlot& slot = slots[done[k].slot];
            std::int64_t moved = done[k].result;
            if (moved != length_) [[unlikely]] {
                if (moved > 0 && slot.moved + moved < length_ && !failed_ && job_.phase->data.io.continue_short) {
                    // Through the queue again: a call that waits could meet another operation's completion.
                    ++meter_.short_operations;
                    slot.moved += static_cast<std::uint32_t>(moved);
                    if (channel_->submit(rest_of(slot.operation, slot.moved))) {
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
            if (moved != length_) [[unlikely]] {
                if (moved < 0 || (moved < length_ && !check)) {
                    fail(file.path, slot.operation.write ? "write" : "read", reason(moved, slot.operation.write),
                         slot.operation.offset);
                    end = End::stop;
                    continue;
                }
            }
            account(slot.operation.write, slot.start, ended);
            if (place(slot.start, ended, length_)) {
                end = End::limit;
            }
            if (counting_ != nullptr) [[unlikely]] {
                counting_->add(slot.operation.write ? meters::kind_write : meters::kind_read, slot.operation.offset,
                               slot.start, ended, time_.duration_ns(ended - slot.start));
            }
            if (check && !slot.operation.write) {
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
std::int64_t DataStream<Time>::finish_short(const IoRequest& operation, std::int64_t moved) noexcept {
    std::int64_t total = 0;
    while (moved > 0 && total + moved < length_ && job_.phase->data.io.continue_short) {
        ++meter_.short_operations;
        total += moved;
        moved = channel_->transfer(rest_of(operation, static_cast<std::uint32_t>(total)));
    }
    return moved < 0 ? moved : total + moved;
}

template <class Time>
void DataStream<Time>::verify(const FileJob& file, std::uint64_t index, const IoRequest& operation, std::int64_t got) {
    const std::uint64_t from = time_.raw();
    std::uint64_t generation = 0;
    for (const Written& written : file.written) {
        if (index < written.operations) {
            generation = written.generation;
            break;
        }
    }
    payload::Image& expected = buffers_->expected();
    expected.set_origin({file.number, generation, static_cast<std::uint32_t>(file.owner)});
    meter_.checked_bytes += operation.length;
    const auto wrong = payload::compare(expected, operation.buffer, operation.offset, operation.length,
                                        static_cast<std::uint64_t>(std::max<std::int64_t>(0, got)));
    if (wrong) {
        ++meter_.mismatches;
        const int writer = file.writer(wrong->offset);
        const std::string by = writer < 0 ? "" : "written by task " + std::to_string(writer) + ", ";
        report(file.path, "verify", 0, wrong->offset,
               std::string(payload::text(wrong->kind)) + ": " + wrong->text + " (expected: " + by + "generation " +
                   std::to_string(generation) + ")");
    }
    const std::uint64_t spent = time_.raw() - from;
    paused_ += spent;
    meter_.verify_ns += static_cast<std::int64_t>(time_.duration_ns(spent));
}

template class DataStream<MachineTime>;
template class DataStream<ChannelTime>;

}  // namespace sonde::workloads
