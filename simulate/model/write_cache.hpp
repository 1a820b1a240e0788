// SPDX-License-Identifier: Apache-2.0
// The write-back cache of a controller: it answers a write when it has room for its bytes, gathers consecutive writes
// to full stripes, and writes to the drives later.
#pragma once

#include "model/storage.hpp"
#include "system/system_model.hpp"

#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

namespace sonde::simulate {

class WriteCache {
 public:
    /// Largest number of partial stripes that wait for their continuation.
    static constexpr std::size_t max_partial_stripes = 64;

    /// A write to the drives below a target.
    struct DriveWrite {
        std::uint32_t target = 0;
        MediaRequest request;
    };

    explicit WriteCache(const WriteCacheDescription& described) : site_(described) {}

    const std::string& controller() const noexcept { return site_.controller; }
    bool is_write_back() const noexcept { return is_write_back_; }
    void set_write_back(bool enabled) noexcept { is_write_back_ = enabled; }

    /// Takes a write. Returns what goes to the drives now: full stripes, and partial stripes that nothing continued.
    /// `stripe`: bytes, 0 where the drives gain nothing by full stripes. `shift`: from a stripe's begin to the
    /// target's.
    std::vector<DriveWrite> add_write(const DriveWrite& write, std::uint64_t stripe, std::uint64_t shift);
    /// Removes the partial stripe of an object of a target, or all of them, and returns what goes to the drives now.
    std::vector<DriveWrite> remove_partial_stripe(std::uint32_t target, std::uint64_t object);
    std::vector<DriveWrite> flush_all();
    /// The drives will have `length` bytes at that time.
    void add_pending(Time done, std::uint64_t length);
    /// When the cache has room for all bytes that it took, at `now` or later.
    Time find_room(Time now);

 private:
    WriteCacheDescription site_;
    bool is_write_back_ = true;
    using PendingWrite = std::pair<Time, std::uint64_t>;  ///< when the drives have it, bytes
    std::priority_queue<PendingWrite, std::vector<PendingWrite>, std::greater<>> pending_;
    std::vector<DriveWrite> partial_stripes_;  ///< oldest first
    std::uint64_t dirty_bytes_ = 0;            ///< of both
};

}  // namespace sonde::simulate
