// SPDX-License-Identifier: Apache-2.0
// Links, servers, targets and drives with their queues, and the time of a request at each.
#pragma once

#include "kernel/random.hpp"
#include "kernel/stations.hpp"
#include "model/extent_cache.hpp"
#include "system/system_model.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace sonde::simulate {

/// Seeds of the noise of parts: each part has its number, so that an added one does not change the others' noise.
struct NoiseSeeds {
    std::uint64_t seed = 1;
    std::uint64_t part_count = 1;
};

struct Link {
    Link(const LinkDescription& described, std::uint64_t seed, std::uint64_t part)
        : description(described), noise(seed, part, described.noise), slowdown(described.slowdown) {}

    LinkDescription description;
    SingleServerStation directions[2];  ///< reads, writes; a half-duplex link uses the second only
    SlowdownNoise noise;
    double slowdown;
    double lost_message_share = 0;       ///< fault: of the messages
    std::uint64_t bytes[2] = {0, 0};     ///< reads, writes
    std::uint64_t messages[2] = {0, 0};  ///< reads, writes
    std::uint64_t lost_messages = 0;

    /// When the first and the last byte of a message are at an end of the link.
    struct LinkTransit {
        Time first_byte = 0, last_byte = 0;
    };
    /// Passes a message whose first and last bytes arrive at `head` and `tail`: returns their times at the other end.
    /// Later messages wait until the link has carried it, but not while its bytes arrive slowly.
    LinkTransit transmit_message(Time head, Time tail, std::uint64_t length, bool is_write) noexcept;
};

/// Work of one drive, or the sum over several.
struct DriveCounters {
    std::uint64_t reads = 0, read_bytes = 0, writes = 0, written_bytes = 0;
    void add(bool is_write, double length) noexcept {
        (is_write ? writes : reads) += 1;
        (is_write ? written_bytes : read_bytes) += static_cast<std::uint64_t>(length);
    }
};

/// The drives below a target, under one RAID group.
struct Medium {
    /// Largest number of simulated drives; further drives share those from the first on.
    static constexpr std::size_t max_arms = 64;

    Medium(const MediumDescription& described, std::uint64_t seed, std::uint64_t part)
        : description(described),
          seek_stations(described.segment_bytes > 0
                            ? std::clamp<std::size_t>(described.data_drives + described.parity_drives, 1, max_arms)
                            : 1),
          drives(seek_stations.size()),
          noise(seed, part, described.noise),
          slowdown(described.slowdown) {}

    MediumDescription description;
    /// Drives, each with its queue. Parity rotates, so each has its share of data and parity. One for all drives where
    /// the geometry is unknown.
    std::vector<SingleServerStation> seek_stations;
    DriveCounters average_drive;        ///< what all drives did alike
    std::vector<DriveCounters> drives;  ///< by arm: what it did besides
    SlowdownNoise noise;
    double slowdown;
    double first_drive_slowdown = 1;  ///< fault
    std::uint64_t last_object = ~0ULL, last_end = 0;
    bool last_is_write = false;
    DriveCounters counters;  ///< with the old data and parity that writes of partial stripes read

    /// Bytes that a request transfers on the drives.
    struct DriveBytes {
        double average_per_drive = 0;  ///< full stripes, and a share of additional parity
        double parity_per_drive = 0;   ///< part of average_drive: parity of partial stripes, read and written
        std::array<double, max_arms> additional_by_drive{};  ///< by drive: partial stripes with their old data
        bool has_full_stripes = false;                       ///< so every drive is touched
        std::uint32_t partial_stripes = 0;                   ///< written
        std::uint64_t reread = 0;                            ///< old data and parity
    };
    DriveBytes compute_drive_bytes(std::uint64_t from, std::uint64_t until, bool is_write) const noexcept;
    /// Busy time of the busiest drive.
    Time busy_time() const noexcept;
};

struct StorageTarget {
    StorageTarget(const TargetDescription& described, std::uint64_t seed, std::uint64_t part)
        : description(described),
          queue(described.queue_depth),
          noise(seed, part, described.noise),
          slowdown(described.slowdown) {}

    TargetDescription description;
    MultiServerStation queue;          ///< commands in parallel
    SingleServerStation rate_station;  ///< the target's own rate, where it is described
    SingleServerStation lock_manager;  ///< grants and revokes one lock at a time
    SlowdownNoise noise;
    double slowdown;
    double retry_share = 0;                ///< fault: of the requests
    double rebuild_share = 0;              ///< fault: of the rate; > 0: a drive is missing
    Time recovered_at = 0;                 ///< fault: no request is served before
    std::uint64_t slice_misalignment = 0;  ///< fault: bytes from the begin of a stripe to that of the target's space
    std::unordered_map<std::uint32_t, std::uint32_t> active_files;  ///< requests in flight; only with contention
    std::uint32_t next_path = 0;                                    ///< of alternative local paths
};

struct Server {
    Server(const ServerDescription& described, std::uint64_t seed, std::uint64_t part)
        : description(described),
          threads(described.threads),
          cache(described.read_cache_bytes),
          noise(seed, part, described.noise),
          slowdown(described.slowdown) {}

    ServerDescription description;
    MultiServerStation threads;
    SingleServerStation journal;
    ExtentCache cache;
    SlowdownNoise noise;
    double slowdown;
};

struct MediaRequest {
    std::uint64_t object = 0;  ///< identifies file and target
    std::uint64_t offset = 0;  ///< in the object
    std::uint64_t length = 0;
    bool is_write = false;
    double drive_position = 0;       ///< of the object: 0 outer edge, 1 inner edge
    std::uint32_t fragments = 1;     ///< of the range
    std::uint32_t writer_count = 1;  ///< tasks that have the object open for writing
};

struct ServiceTimes {
    Time first_byte = 0;  ///< when the answer can begin to leave: the first stripe of a longer read is ready
    Time done = 0;
};
/// When the target and its medium complete a request that arrived at `now`. `medium` may be null.
ServiceTimes serve_request(StorageTarget& target, Medium* medium, const MediaRequest& request, Time now);

}  // namespace sonde::simulate
