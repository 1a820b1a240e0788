// SPDX-License-Identifier: Apache-2.0
// Latency histogram: log-linear buckets, 64 to an octave, so that the middle of a bucket is within 0.8 % of any value
// in it. From 1 ns to 2^42 ns (73 minutes); what is longer is counted as overflow and still in max and sum. Plain data
// (19 KiB): lives in shared memory, merged by adding.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace sonde::meters {

struct Histogram {
    static constexpr unsigned sub_bits = 6;  // 64 buckets an octave
    static constexpr unsigned top_bit = 42;
    static constexpr std::size_t buckets =
        ((top_bit - sub_bits) << sub_bits) + (1U << (sub_bits + 1U)) - (1U << sub_bits);

    std::uint64_t sum_ns = 0;
    std::uint64_t min_ns = ~0ULL;
    std::uint64_t max_ns = 0;
    std::uint64_t overflow = 0;
    std::uint64_t counts[buckets] = {};

    static constexpr std::size_t bucket_of(std::uint64_t ns) noexcept {
        if (ns < (1U << sub_bits)) {
            return ns;
        }
        const unsigned exponent = 63U - static_cast<unsigned>(std::countl_zero(ns));
        return (static_cast<std::size_t>(exponent - sub_bits) << sub_bits) + (ns >> (exponent - sub_bits));
    }
    /// First value of a bucket; one past its last is low(b + 1).
    static constexpr std::uint64_t low(std::size_t bucket) noexcept {
        if (bucket < (2U << sub_bits)) {
            return bucket;
        }
        const std::size_t octave = (bucket >> sub_bits) - 1;
        return ((bucket & ((1U << sub_bits) - 1)) + (1U << sub_bits)) << octave;
    }

    void add(std::uint64_t ns) noexcept {
        const std::size_t bucket = bucket_of(ns);
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
    void count_one(std::uint64_t ns) noexcept {
        const std::size_t bucket = bucket_of(ns);
        ++(bucket < buckets ? counts[bucket] : overflow);
    }
    void summarize(std::uint64_t sum, std::uint64_t least, std::uint64_t most) noexcept {
        sum_ns += sum;
        min_ns = least < min_ns ? least : min_ns;
        max_ns = most > max_ns ? most : max_ns;
    }

    void merge(const Histogram& other) noexcept;
    std::uint64_t count() const noexcept;
    /// Smallest value such that a share `q` (0..1) of all values is not larger: the middle of its bucket, held inside
    /// [min, max]. 0 when empty.
    std::uint64_t quantile(double q) const noexcept;

    struct Bucket {
        std::uint64_t low_ns, high_ns, count;
    };
    std::vector<Bucket> filled() const;
};

}  // namespace sonde::meters
