// SPDX-License-Identifier: Apache-2.0
#include "model/write_cache.hpp"

#include <algorithm>

namespace sonde::simulate {
namespace {

/// The bytes `from` … `until`-1 of a write.
WriteCache::DriveWrite cut_write(WriteCache::DriveWrite write, std::uint64_t from, std::uint64_t until) {
    write.request.offset = from;
    write.request.length = until - from;
    return write;
}

}  // namespace

std::vector<WriteCache::DriveWrite> WriteCache::add_write(const DriveWrite& write, std::uint64_t stripe,
                                                          std::uint64_t shift) {
    dirty_bytes_ += write.request.length;
    if (stripe == 0) {
        return {write};
    }
    std::vector<DriveWrite> ready = remove_partial_stripe(write.target, write.request.object);
    std::uint64_t from = write.request.offset;
    const std::uint64_t until = from + write.request.length;
    if (!ready.empty() && ready.front().request.offset + ready.front().request.length == from) {
        from = ready.front().request.offset;
        ready.clear();
    }
    const std::uint64_t last_border = (until + shift) / stripe * stripe;
    const std::uint64_t full_until = last_border > from + shift ? last_border - shift : from;
    if (full_until > from) {
        ready.push_back(cut_write(write, from, full_until));
    }
    if (until > full_until) {
        partial_stripes_.push_back(cut_write(write, full_until, until));
    }
    if (partial_stripes_.size() > max_partial_stripes) {
        ready.push_back(partial_stripes_.front());
        partial_stripes_.erase(partial_stripes_.begin());
    }
    return ready;
}

std::vector<WriteCache::DriveWrite> WriteCache::remove_partial_stripe(std::uint32_t target, std::uint64_t object) {
    const auto partial = std::find_if(partial_stripes_.begin(), partial_stripes_.end(), [&](const DriveWrite& other) {
        return other.target == target && other.request.object == object;
    });
    if (partial == partial_stripes_.end()) {
        return {};
    }
    const DriveWrite flushed = *partial;
    partial_stripes_.erase(partial);
    return {flushed};
}

std::vector<WriteCache::DriveWrite> WriteCache::flush_all() {
    return std::exchange(partial_stripes_, {});
}

void WriteCache::add_pending(Time done, std::uint64_t length) {
    pending_.emplace(done, length);
}

Time WriteCache::find_room(Time now) {
    Time room_time = now;
    while (!pending_.empty() && (pending_.top().first <= now || dirty_bytes_ > site_.bytes)) {
        room_time = std::max(room_time, pending_.top().first);
        dirty_bytes_ -= pending_.top().second;
        pending_.pop();
    }
    return room_time;
}

}  // namespace sonde::simulate
