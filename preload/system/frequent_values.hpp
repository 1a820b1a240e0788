// SPDX-License-Identifier: Apache-2.0
// The most frequent values of a stream, in memory of fixed size.
#pragma once

#include <cstdint>

namespace sonde::system {

/// The most frequent values of something, with counts that are exact while there are no more than `places` values.
class FrequentValues {
 public:
    static constexpr unsigned capacity = 8;
    void add(std::int64_t value) noexcept {
        if (value == values_[last_] && counts_[last_] > 0) {  // the ordinary case
            ++counts_[last_];
            return;
        }
        add_other(value);
    }
    std::int64_t value(unsigned i) const noexcept { return values_[i]; }
    std::uint64_t count(unsigned i) const noexcept { return counts_[i]; }

 private:
    void add_other(std::int64_t value) noexcept {
        for (unsigned i = 0; i < capacity; ++i) {
            if (values_[i] == value && counts_[i] > 0) {
                ++counts_[i];
                last_ = i;
                return;
            }
        }
        // Somebody must make place: each in turn loses one, and who has nothing left is replaced. Counts so never
        // promise too much, and a value that comes more often than one time in nine stays.
        next_victim_ = (next_victim_ + 1) % capacity;
        if (counts_[next_victim_] <= 1) {
            values_[next_victim_] = value;
            counts_[next_victim_] = 1;
            last_ = next_victim_;
        } else {
            --counts_[next_victim_];
        }
    }
    std::int64_t values_[capacity] = {};
    std::uint64_t counts_[capacity] = {};
    unsigned last_ = 0;
    unsigned next_victim_ = capacity - 1;
};

}  // namespace sonde::system
