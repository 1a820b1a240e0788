// SPDX-License-Identifier: Apache-2.0
// Transfers of one stream per storage target: bytes and operations by time slice, and latencies. Memory
// is bounded by the targets that its files lie on; it is taken when a file is opened, never while operations run.
//
// An operation whose bytes all lie on one target is *single*: its latency is that target's. One over several is
// *split*: each target gets its own bytes of it, exactly, and counts it as an operation; its latency is counted
// nowhere, because it is that of the slowest of them, and would blame the others.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sonde::meters {

/// Buckets of latencies, eight to an octave: the middle of a bucket is within 6 % of any value in it.
struct TargetLatency {
    static constexpr unsigned octave_bits = 3;
    static constexpr unsigned max_value_bits = 42;  ///< what is longer counts in the last bucket
    static constexpr std::size_t buckets = ((max_value_bits - octave_bits) << octave_bits) + (1U << octave_bits);

    static constexpr std::size_t get_bucket_index(std::uint64_t ns) noexcept {
        const unsigned octave = (static_cast<unsigned>(std::countl_zero(ns | 15U)) ^ 63U) - octave_bits;
        const std::size_t bucket = (static_cast<std::size_t>(octave) << octave_bits) + (ns >> octave);
        return bucket < buckets ? bucket : buckets - 1;
    }
    /// First value of a bucket; one past its last is low(b + 1).
    static constexpr std::uint64_t bucket_begin(std::size_t bucket) noexcept {
        if (bucket < (2U << octave_bits)) {
            return bucket;
        }
        const std::size_t octave = (bucket >> octave_bits) - 1;
        return ((bucket & ((1U << octave_bits) - 1)) + (1U << octave_bits)) << octave;
    }
};

/// One target in one slice of time. An operation is counted where it ends, its bytes are spread over its duration.
struct TargetCell {
    std::uint64_t bytes = 0;
    std::uint64_t single_ops = 0, single_ns = 0;  ///< with all their bytes here, and how long they took together
    std::uint64_t split_ops = 0;                  ///< with some of their bytes here

    bool is_used() const noexcept { return (bytes | single_ops | single_ns | split_ops) != 0; }
    void add(const TargetCell& other) noexcept {
        bytes += other.bytes;
        single_ops += other.single_ops;
        single_ns += other.single_ns;
        split_ops += other.split_ops;
    }
};

class TargetMeter {
 public:
    static constexpr std::uint32_t max_rows = 64;
    static constexpr std::size_t max_targets = 2048;
    static constexpr std::uint32_t no_target = ~0U;

    /// Time zero and the width of the first slices, in ticks of the stream's clock.
    TargetMeter(std::uint64_t start, std::uint64_t width) noexcept;

    /// The number of a target in this meter, which may be a new one; none when it has max_targets already.
    std::uint32_t find_or_add_target(std::string_view name);
    /// Takes the memory for all targets that have got a number, before they are counted.
    void allocate_counters();
    const std::vector<std::string>& names() const noexcept { return names_; }

    /// A single operation of `kind` (read, write) from tick `from` to tick `to`, `ns` long. Hot.
    void add_single(unsigned kind, std::uint32_t target, std::uint64_t from, std::uint64_t to, std::uint64_t ns,
                    std::uint64_t bytes) noexcept {
        TargetArrays& counts = counts_[kind];
        ++counts.latency[TargetLatency::get_bucket_index(ns) * stride_ + target];
        counts.longest[target] = ns > counts.longest[target] ? ns : counts.longest[target];
        if (from < row_start_ || to > row_end_) [[unlikely]] {
            add_proportionally(kind, target, from, to, bytes);
            bytes = 0;
        }
        TargetCell& cell = counts.cells[row_ * stride_ + target];
        cell.bytes += bytes;
        ++cell.single_ops;
        cell.single_ns += ns;
    }
    /// Single operations of `bytes` that followed one another on one target, the first from tick `begin`: as many as
    /// end in one slice and have their offset in [low, low + room], of which the first is one. How many that were. Hot.
    template <class Duration>
    std::size_t add_consecutive(unsigned kind, std::uint32_t target, const std::uint64_t* offsets, std::uint64_t low,
                                std::uint64_t room, std::uint64_t begin, std::span<const std::uint64_t> ends,
                                std::uint64_t bytes, const Duration& ns_of) noexcept {
        if (begin < row_start_ || ends[0] > row_end_) [[unlikely]] {
            add_single(kind, target, begin, ends[0], ns_of(ends[0] - begin), bytes);
            return 1;
        }
        TargetArrays& counts = counts_[kind];
        std::uint64_t* const latency = counts.latency.get() + target;
        const std::size_t stride = stride_;
        const std::uint64_t row_end = row_end_;
        std::uint64_t longest = counts.longest[target], sum_ns = 0;
        std::size_t done = 0;
        do {
            const std::uint64_t end = ends[done];
            const std::uint64_t ns = ns_of(end - begin);
            ++latency[TargetLatency::get_bucket_index(ns) * stride];
            longest = ns > longest ? ns : longest;
            sum_ns += ns;
            begin = end;
            ++done;
        } while (done < ends.size() && offsets[done] - low <= room && ends[done] <= row_end);
        counts.longest[target] = longest;
        TargetCell& cell = counts.cells[row_ * stride + target];
        cell.bytes += done * bytes;
        cell.single_ops += done;
        cell.single_ns += sum_ns;
        return done;
    }
    /// The `bytes` on one target of an operation over several; `first`: not yet counted as an operation there.
    void add_split(unsigned kind, std::uint32_t target, std::uint64_t from, std::uint64_t to, std::uint64_t bytes,
                   bool first) noexcept {
        if (from < row_start_ || to > row_end_) [[unlikely]] {
            add_proportionally(kind, target, from, to, bytes);
            bytes = 0;
        }
        TargetCell& cell = counts_[kind].cells[row_ * stride_ + target];
        cell.bytes += bytes;
        cell.split_ops += first ? 1U : 0U;
    }

    /// A slice is 2^doublings() first widths wide.
    std::uint32_t doublings() const noexcept { return doublings_; }
    std::uint32_t rows() const noexcept { return capacity_; }
    const TargetCell& cell(unsigned kind, std::uint32_t row, std::uint32_t target) const noexcept {
        return counts_[kind].cells[row * stride_ + target];
    }
    std::uint64_t latencies(unsigned kind, std::size_t bucket, std::uint32_t target) const noexcept {
        return counts_[kind].latency[bucket * stride_ + target];
    }
    std::uint64_t longest_ns(unsigned kind, std::uint32_t target) const noexcept {
        return counts_[kind].longest[target];
    }

 private:
    struct FreeMemory {
        void operator()(void* memory) const noexcept { std::free(memory); }
    };
    template <class T>
    using ZeroedArray = std::unique_ptr<T[], FreeMemory>;
    /// By target within a bucket and a row, so that only the pages of buckets and rows in use are ever touched.
    struct TargetArrays {
        ZeroedArray<std::uint64_t> latency;  ///< TargetLatency::buckets × stride_
        ZeroedArray<std::uint64_t> longest;  ///< stride_
        ZeroedArray<TargetCell> cells;       ///< capacity_ × stride_
    };
    template <class T>
    static ZeroedArray<T> allocate_zeroed(std::size_t count);
    void add_proportionally(unsigned kind, std::uint32_t target, std::uint64_t from, std::uint64_t to,
                            std::uint64_t bytes) noexcept;
    void advance_to(std::uint64_t tick) noexcept;
    void merge_row_pairs() noexcept;

    TargetArrays counts_[2];
    std::vector<std::string> names_;
    std::uint64_t row_start_ = 0, row_end_ = 0;
    std::uint64_t start_, width_;
    std::uint32_t row_ = 0, stride_ = 0;
    std::uint32_t capacity_ = max_rows, doublings_ = 0;
};

/// The counters of one stream for each target.
struct TargetsServed {
    const TargetMeter* meter = nullptr;  ///< null: no file of the stream has a layout that is known
    std::uint64_t opened_files = 0;      ///< that it opened
    std::uint64_t known_layouts = 0;     ///< of these: whose layout is known
};

}  // namespace sonde::meters
