// SPDX-License-Identifier: Apache-2.0
// When the operations of a task with a limited rate are due: a fixed schedule from the first operation on, whatever
// storage does. Operation k is due when the limits would allow operations 0 … k - 1 to have been served. A task that is
// late therefore catches up, and the latency of an operation, counted from when it was due, includes its wait.
#pragma once

#include "plan/plan.hpp"

#include <algorithm>
#include <cstdint>

namespace sonde::workloads {

class Pacer {
 public:
    Pacer() = default;
    /// `ticks_of` converts seconds to ticks of the clock.
    template <class Ticks>
    Pacer(const plan::Io& io, const Ticks& ticks_of)
        : per_byte_(io.rate_limit ? ticks_of(1 / *io.rate_limit) : 0),
          per_operation_(io.iops_limit ? ticks_of(1 / *io.iops_limit) : 0) {}

    /// The tick at which the next operation, of `length` bytes, is due. The first one is due `now`.
    std::uint64_t begin_operation(std::uint64_t now, std::uint32_t length) noexcept {
        if (!begun_) {
            begun_ = true;
            first_ = now;
        }
        const std::uint64_t due = first_ + static_cast<std::uint64_t>(after_first_);
        after_first_ += std::max(per_byte_ * length, per_operation_);
        return due;
    }

 private:
    double per_byte_ = 0, per_operation_ = 0;  ///< ticks
    double after_first_ = 0;                   ///< ticks from the first operation to the next one
    std::uint64_t first_ = 0;
    bool begun_ = false;
};

}  // namespace sonde::workloads
