// SPDX-License-Identifier: Apache-2.0
// Latency histogram: log-linear buckets, 64 to an octave, so that the middle of a bucket is within 0.8 % of any value
// in it. From 1 ns to 2^42 ns (73 minutes); what is longer is counted as overflow and still in max and sum. Plain data
// (20 KiB): lives in shared memory, merged by adding. Only the pages that hold values are ever touched: latencies below
// 7.9 us, with the sums, are the first one, and no page holds less than eight octaves.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace sonde::meters {

struct alignas(4096) Histogram {
    static constexpr unsigned octave_bits = 6;  // 64 buckets an octave
    static constexpr unsigned max_value_bits = 42;
    static constexpr std::size_t buckets =
        ((max_value_bits - octave_bits) << octave_bits) + (1U << (octave_bits + 1U)) - (1U << octave_bits);

    std::uint64_t sum_ns = 0;
    std::uint64_t min_ns = ~0ULL;
    std::uint64_t max_ns = 0;
    std::uint64_t overflow = 0;
    std::uint64_t counts[buckets] = {};

    static constexpr std::size_t get_bucket_index(std::uint64_t ns) noexcept {
        // Below 128 each value has its own; without a branch for them.
        const unsigned octave = (static_cast<unsigned>(std::countl_zero(ns | 127U)) ^ 63U) - octave_bits;
        return (static_cast<std::size_t>(octave) << octave_bits) + (ns >> octave);
    }
    /// First value of a bucket; one past its last is low(b + 1).
    static constexpr std::uint64_t bucket_begin(std::size_t bucket) noexcept {
        if (bucket < (2U << octave_bits)) {
            return bucket;
        }
        const std::size_t octave = (bucket >> octave_bits) - 1;
        return ((bucket & ((1U << octave_bits) - 1)) + (1U << octave_bits)) << octave;
    }

    void add(std::uint64_t ns) noexcept {
        const std::size_t bucket = get_bucket_index(ns);
        if (bucket < buckets) [[likely]] {
            ++counts[bucket];
        } else {
            ++overflow;
        }
        sum_ns += ns;
        min_ns = ns < min_ns ? ns : min_ns;
        max_ns = ns > max_ns ? ns : max_ns;
    }

    /// add() in two parts: the bucket of each value at once, and what many values have in common later.
    void count_in_bucket(std::uint64_t ns) noexcept {
        // A floating point number is log-linear itself: from 64 ns on, its exponent with the first bits of its mantissa
        // is the bucket, in half the instructions of get_bucket_index().
        constexpr std::size_t first = 1U << octave_bits;
        constexpr std::uint64_t bits_of_first = std::bit_cast<std::uint64_t>(static_cast<double>(first));
        constexpr unsigned shift = 52 - octave_bits;
        const auto bits = std::bit_cast<std::uint64_t>(static_cast<double>(static_cast<std::int64_t>(ns)));
        const std::uint64_t above = (bits >> shift) - (bits_of_first >> shift);
        if (above < buckets - first) [[likely]] {
            ++counts[first + above];
            return;
        }
        const std::size_t bucket = get_bucket_index(ns);
        ++(bucket < buckets ? counts[bucket] : overflow);
    }
    void add_summary(std::uint64_t sum, std::uint64_t least, std::uint64_t most) noexcept {
        sum_ns += sum;
        min_ns = least < min_ns ? least : min_ns;
        max_ns = most > max_ns ? most : max_ns;
    }

    /// Takes the memory of what ends below 2 ms, so that the first operations do not wait for it.
    void touch_pages() noexcept {
        static_cast<volatile std::uint64_t*>(counts)[get_bucket_index(0)] = counts[get_bucket_index(0)];
        static_cast<volatile std::uint64_t*>(counts)[get_bucket_index(100'000)] = counts[get_bucket_index(100'000)];
    }
    /// Empties it, whatever it held: an object, or zeroed memory where none was yet.
    void clear() noexcept;
    void merge(const Histogram& other) noexcept;
    std::uint64_t count() const noexcept;
    /// Smallest value such that a share `q` (0..1) of all values is not larger: the middle of its bucket, held inside
    /// [min, max]. 0 when empty.
    std::uint64_t quantile(double q) const noexcept;

    struct Bucket {
        std::uint64_t low_ns, high_ns, count;
    };
    std::vector<Bucket> list_filled_buckets() const;

 private:
    struct BucketRange {
        std::size_t from, to;  ///< one past the last
    };
    /// The buckets that may hold values: those from min to max.
    BucketRange value_range() const noexcept;
};

}  // namespace sonde::meters
