// SPDX-License-Identifier: Apache-2.0
// Links, drives and targets with what waits at them, and how long a request takes there.
#pragma once

#include "kernel/random.hpp"
#include "kernel/stations.hpp"
#include "model/extent_cache.hpp"
#include "system/site.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace sonde::simulate {

struct Link {
    Link(const LinkSite& of, std::uint64_t seed, std::uint64_t part)
        : site(of), weather(seed, part, of.noise), factor(of.slowdown) {}

    LinkSite site;
    Fifo way[2];  ///< to the client (reads), to storage (writes); half duplex uses the second one only
    Weather weather;
    double factor;
    std::uint64_t bytes[2] = {0, 0};

    /// A message of which the first byte is here at `head` and the last will be at `tail`: when its first and last
    /// bytes are at the other end. What comes later waits until the link has carried it; what comes slowly does not
    /// hold it.
    struct Passage {
        Time head = 0, tail = 0;
    };
    Passage pass(Time head, Time tail, std::uint64_t length, bool writing) noexcept;
};

/// What is below a target: drives under one RAID group.
struct Medium {
    /// Drives beyond so many data drives take their work together with those at the front.
    static constexpr std::size_t most_arms = 64;

    Medium(const MediumSite& of, std::uint64_t seed, std::uint64_t part)
        : site(of),
          arms(of.segment > 0 ? std::clamp<std::size_t>(of.data, 1, most_arms) : 1),
          weather(seed, part, of.noise),
          factor(of.slowdown) {}

    MediumSite site;
    /// Data drives: each does what is asked of it one after the other, and requests that touch different ones do not
    /// wait for each other. Parity goes round, so its share is in each. One for all where no geometry is known.
    std::vector<Fifo> arms;
    Weather weather;
    double factor;
    std::uint64_t last_object = ~0ULL, last_end = 0;
    bool last_write = false;
    // Data that was read and written, with the old data and parity that writes of part of a stripe read first.
    std::uint64_t reads = 0, read_bytes = 0, writes = 0, written_bytes = 0;

    /// What a range asks of the drives, in bytes.
    struct Load {
        double each = 0;                       ///< of every drive: whole stripes, and its share of more parity
        std::array<double, most_arms> more{};  ///< of single ones: parts of stripes, and what they are read for
        bool whole = false;                    ///< there are whole stripes, so every drive is touched
        std::uint32_t partial = 0;             ///< stripes written in part
        std::uint64_t reread = 0;              ///< bytes of old data and parity to read first
    };
    Load load_of(std::uint64_t from, std::uint64_t to, bool writing) const noexcept;
    /// Of the busiest drive; for a record of what they did.
    Time busy() const noexcept;
};

struct Target {
    Target(const TargetSite& of, std::uint64_t seed, std::uint64_t part)
        : site(of), queue(of.queue_depth), weather(seed, part, of.noise), factor(of.slowdown) {}

    TargetSite site;
    Slots queue;  ///< commands that it takes at once
    Fifo rate;    ///< its own rate, where it says one
    Fifo locks;   ///< grants and revocations, one at a time
    Weather weather;
    double factor;
    double retry_share = 0;    ///< failing drive
    double rebuild_share = 0;  ///< of the rate that a rebuild takes; > 0: a drive is missing
    std::uint64_t shift = 0;   ///< its space begins so far behind a stripe
    std::uint32_t active_clients = 0;
    bool neighbour_comes = false;  ///< the next request of others is planned
    std::uint32_t turn = 0;        ///< of alternative local ways
};

struct Server {
    Server(const ServerSite& of, std::uint64_t seed, std::uint64_t part)
        : site(of), threads(of.threads), cache(of.cache), weather(seed, part, of.noise), factor(of.slowdown) {}

    ServerSite site;
    Slots threads;
    Fifo journal;
    ExtentCache cache;
    Weather weather;
    double factor;
    int rate_link = -1;  ///< its own limit, as a link
};

/// One request as its target sees it.
struct MediaRequest {
    std::uint64_t object = 0;  ///< file and target
    std::uint64_t offset = 0;  ///< in the object
    std::uint64_t length = 0;
    bool writing = false;
    double position = 0;        ///< of the object: 0 outer edge, 1 inner edge
    std::uint32_t pieces = 1;   ///< in which it lies: fragmentation
    std::uint32_t writers = 1;  ///< tasks that have the object open for writing
};

struct Served {
    Time first = 0;  ///< when it can begin to leave: the first stripe of a longer read is there
    Time done = 0;
};
/// When the target and the medium below it have done a request that arrived at `now`.
Served serve(Target& target, Medium* medium, const MediaRequest& request, Time now);

}  // namespace sonde::simulate
