// SPDX-License-Identifier: Apache-2.0
// Says of each operation of a stream which target served it, from the layout of the file that is open. Works on
// operations that are over, outside their latencies; allocates only when a file is opened or a layout was completed.
#pragma once

#include "meters/target_meter.hpp"
#include "patterns/stripes.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace sonde::workloads {

/// The layout of a file, from the file system; empty if unknown.
using StripeQuery = std::function<patterns::FileStripes(const std::string& path)>;

class TargetCounter {
 public:
    static constexpr std::size_t max_at_once = 256;

    /// Operations of `length` bytes are counted in `meter`.
    TargetCounter(const StripeQuery& ask, std::shared_ptr<meters::TargetMeter> meter, std::uint32_t length)
        : query_stripes_(ask), shared_meter_(std::move(meter)), meter_(*shared_meter_), length_(length) {}

    /// The file at `path` has been opened and has this layout, which is not empty.
    void set_file(const std::string& path, const patterns::FileStripes& stripes);

    /// The operations to come, at most max_at_once: for loops that keep no offsets.
    void set_expected_offsets(std::span<const std::uint64_t> offsets) noexcept {
        std::copy(offsets.begin(), offsets.end(), expected_offsets_.begin());
    }
    const std::uint64_t* expected_offsets() const noexcept { return expected_offsets_.data(); }

    /// An operation of `kind` at `offset` is over: from tick `from` to tick `to`, `ns` long.
    void add(unsigned kind, std::uint64_t offset, std::uint64_t from, std::uint64_t to, std::uint64_t ns) noexcept {
        if (offset - begin_ > last_begin_distance_) [[unlikely]] {
            if (!select_extent(offset)) {
                count_split_operation(kind, offset, from, to, ns);
                return;
            }
        }
        if (target_ != meters::TargetMeter::no_target) [[likely]] {
            meter_.add_single(kind, target_, from, to, ns, length_);
        }
    }

    /// Operations of `kind` that followed one another at `offsets`, the first from tick `begin`; `ns_of` says how long
    /// so many ticks are. Those on one target are counted together.
    template <class Duration>
    void add_consecutive(unsigned kind, const std::uint64_t* offsets, std::uint64_t begin,
                         std::span<const std::uint64_t> ends, const Duration& ns_of) noexcept {
        for (std::size_t k = 0; k < ends.size();) {
            const std::uint64_t from = k == 0 ? begin : ends[k - 1];
            if (offsets[k] - begin_ > last_begin_distance_ && !select_extent(offsets[k])) {
                count_split_operation(kind, offsets[k], from, ends[k], ns_of(ends[k] - from));
                ++k;
            } else if (target_ == meters::TargetMeter::no_target) {
                ++k;
            } else {
                k += meter_.add_consecutive(kind, target_, offsets + k, begin_, last_begin_distance_, from,
                                            ends.subspan(k), length_, ns_of);
            }
        }
    }

 private:
    bool select_extent(std::uint64_t offset) noexcept;
    void count_split_operation(unsigned kind, std::uint64_t offset, std::uint64_t from, std::uint64_t to,
                               std::uint64_t ns) noexcept;
    patterns::StripeMap::StripeExtent find_extent(std::uint64_t offset) noexcept;
    void build_stripe_map(const patterns::FileStripes& stripes);

    const StripeQuery& query_stripes_;
    std::shared_ptr<meters::TargetMeter> shared_meter_;
    meters::TargetMeter& meter_;
    patterns::StripeMap map_;
    std::string path_;
    std::vector<std::uint64_t> queried_again_;         ///< beginnings of parts whose targets were pending
    std::vector<std::uint64_t> last_split_by_target_;  ///< by target: the last split operation that touched it
    std::uint64_t splits_ = 0;
    // The last answer: an operation of length_ bytes that begins in [begin_, begin_ + last_begin_distance_] is stored
    // on target_ alone.
    std::uint64_t begin_ = ~0ULL, last_begin_distance_ = 0;
    std::uint32_t target_ = meters::TargetMeter::no_target;
    std::uint32_t length_;
    std::array<std::uint64_t, max_at_once> expected_offsets_;
};

}  // namespace sonde::workloads
