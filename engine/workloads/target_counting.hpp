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

/// The layout of a file, from the file system; empty when it does not tell.
using AskStripes = std::function<patterns::FileStripes(const std::string& path)>;

class TargetCounting {
 public:
    static constexpr std::size_t most_at_once = 256;

    /// Operations of `length` bytes are counted in `meter`.
    TargetCounting(const AskStripes& ask, std::shared_ptr<meters::TargetMeter> meter, std::uint32_t length)
        : ask_(ask), kept_(std::move(meter)), meter_(*kept_), length_(length) {}

    /// The file at `path` has been opened and has this layout, which is not empty.
    void take(const std::string& path, const patterns::FileStripes& stripes);

    /// The operations to come, at most most_at_once: for loops that keep no offsets.
    void expect(std::span<const std::uint64_t> offsets) noexcept {
        std::copy(offsets.begin(), offsets.end(), expected_.begin());
    }
    const std::uint64_t* expected() const noexcept { return expected_.data(); }

    /// An operation of `kind` at `offset` is over: from tick `from` to tick `to`, `ns` long.
    void add(unsigned kind, std::uint64_t offset, std::uint64_t from, std::uint64_t to, std::uint64_t ns) noexcept {
        if (offset - begin_ > room_) [[unlikely]] {
            if (!enter(offset)) {
                split(kind, offset, from, to, ns);
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
    void add_all(unsigned kind, const std::uint64_t* offsets, std::uint64_t begin, std::span<const std::uint64_t> ends,
                 const Duration& ns_of) noexcept {
        for (std::size_t k = 0; k < ends.size();) {
            const std::uint64_t from = k == 0 ? begin : ends[k - 1];
            if (offsets[k] - begin_ > room_ && !enter(offsets[k])) {
                split(kind, offsets[k], from, ends[k], ns_of(ends[k] - from));
                ++k;
            } else if (target_ == meters::TargetMeter::no_target) {
                ++k;
            } else {
                k += meter_.add_consecutive(kind, target_, offsets + k, begin_, room_, from, ends.subspan(k), length_,
                                            ns_of);
            }
        }
    }

 private:
    bool enter(std::uint64_t offset) noexcept;
    void split(unsigned kind, std::uint64_t offset, std::uint64_t from, std::uint64_t to, std::uint64_t ns) noexcept;
    patterns::StripeMap::StripeExtent find(std::uint64_t offset) noexcept;
    void build_stripe_map(const patterns::FileStripes& stripes);

    const AskStripes& ask_;
    std::shared_ptr<meters::TargetMeter> kept_;
    meters::TargetMeter& meter_;
    patterns::StripeMap map_;
    std::string path_;
    std::vector<std::uint64_t> asked_again_;  ///< beginnings of parts whose targets were pending
    std::vector<std::uint64_t> seen_;         ///< by target: the last split operation that touched it
    std::uint64_t splits_ = 0;
    // The last answer: an operation of length_ bytes that begins in [begin_, begin_ + room_] is stored on target_
    // alone.
    std::uint64_t begin_ = ~0ULL, room_ = 0;
    std::uint32_t target_ = meters::TargetMeter::no_target;
    std::uint32_t length_;
    std::array<std::uint64_t, most_at_once> expected_;
};

}  // namespace sonde::workloads
