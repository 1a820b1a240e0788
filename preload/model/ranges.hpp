// SPDX-License-Identifier: Apache-2.0
// Which bytes of a page are valid, and which are dirty: a few sorted ranges. Exact to the byte, so that nothing is ever
// written that the program did not write, and no page must be read before it can be written.
#pragma once

#include <cstdint>
#include <cstring>

namespace sonde::buffer {

struct Range {
    std::uint32_t begin;
    std::uint32_t end;  ///< one after the last byte
};

class RangeSet {
 public:
    static constexpr std::uint32_t capacity = 32;

    /// Adds [begin, end) and merges adjacent ranges. Returns false, without a change, if the set is full.
    bool add(std::uint32_t begin, std::uint32_t end) noexcept {
        if (count_ > 0 && ranges_[count_ - 1].begin <= begin && begin <= ranges_[count_ - 1].end) {
            Range& last = ranges_[count_ - 1];  // the ordinary case: a stream of small records
            last.end = end > last.end ? end : last.end;
            return true;
        }
        std::uint32_t first = 0;
        while (first < count_ && ranges_[first].end < begin) {
            ++first;
        }
        std::uint32_t last = first;  // [first, last) touch the new range
        while (last < count_ && ranges_[last].begin <= end) {
            begin = ranges_[last].begin < begin ? ranges_[last].begin : begin;
            end = ranges_[last].end > end ? ranges_[last].end : end;
            ++last;
        }
        if (first == last && count_ == capacity) {
            return false;
        }
        std::memmove(&ranges_[first + 1], &ranges_[last], (count_ - last) * sizeof(Range));
        count_ = count_ - (last - first) + 1;
        ranges_[first] = {begin, end};
        return true;
    }
    bool covers(std::uint32_t begin, std::uint32_t end) const noexcept {
        for (std::uint32_t i = 0; i < count_; ++i) {
            if (begin < ranges_[i].end) {
                return ranges_[i].begin <= begin && end <= ranges_[i].end;
            }
        }
        return false;
    }
    /// Returns the first part of [begin, end) that is not in the set; empty (begin == end) if all of it is.
    Range gap(std::uint32_t begin, std::uint32_t end) const noexcept {
        for (std::uint32_t i = 0; i < count_ && begin < end; ++i) {
            if (ranges_[i].end <= begin) {
                continue;
            }
            if (ranges_[i].begin > begin) {
                return {begin, ranges_[i].begin < end ? ranges_[i].begin : end};
            }
            begin = ranges_[i].end;
        }
        return {begin < end ? begin : end, end};
    }
    /// Returns whether one more range fits into the set.
    bool has_room() const noexcept { return count_ < capacity; }
    bool empty() const noexcept { return count_ == 0; }
    void clear() noexcept { count_ = 0; }
    std::uint32_t count() const noexcept { return count_; }
    Range operator[](std::uint32_t i) const noexcept { return ranges_[i]; }
    std::uint32_t bytes() const noexcept {
        std::uint32_t sum = 0;
        for (std::uint32_t i = 0; i < count_; ++i) {
            sum += ranges_[i].end - ranges_[i].begin;
        }
        return sum;
    }

 private:
    std::uint32_t count_ = 0;
    Range ranges_[capacity];
};

}  // namespace sonde::buffer
