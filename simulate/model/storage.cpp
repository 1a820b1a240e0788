// SPDX-License-Identifier: Apache-2.0
#include "model/storage.hpp"

#include <algorithm>

namespace sonde::simulate {
namespace {

/// Share of the rate of a target that remains: by position on the drives, a missing drive and its rebuild, and the
/// number of files.
double remaining_rate_share(const StorageTarget& target, const Medium* medium, double position) noexcept {
    double share = 1;
    if (medium != nullptr) {
        share *= 1 - (1 - medium->description.inner_rate_share) * position;
    }
    if (target.rebuild_share > 0) {
        share *= (1 - target.rebuild_share) * (medium != nullptr ? medium->description.degraded_share : 0.8);
    }
    if (target.active_files.size() < 2) {
        return share;
    }
    // 1 / (1 + c (n - 1)): each further file costs a share c of the rate of one.
    return share / (1 + target.description.contention * static_cast<double>(target.active_files.size() - 1));
}

/// Seek time of a request that is not sequential. Each touched drive moves its own arm. Without geometry there is one
/// drive with the average time.
Time seek_time(const MediumDescription& site, const MediaRequest& request, bool is_sequential,
               std::uint64_t touched_drives) noexcept {
    const std::uint64_t segment = site.segment_bytes > 0 ? site.segment_bytes : Defaults::segment_bytes;
    const Time one_seek = site.seek + site.rotation / 2;
    Time time = 0;
    if (!is_sequential && site.seek > 0 && (!site.sorts_requests || request.length <= segment)) {
        const auto reached_drives = std::min<std::uint64_t>((request.length + segment - 1) / segment, site.drive_count);
        time += site.segment_bytes > 0
                    ? one_seek
                    : multiply_time(one_seek, static_cast<double>(reached_drives) / site.drive_count);
    }
    // Each further fragment needs a seek of its drives, shared by all drives over time.
    const std::uint64_t fragment_bytes = request.length / std::max(request.fragments, 1U);
    const auto arms = std::clamp<std::uint64_t>((fragment_bytes + segment - 1) / segment, 1, site.drive_count);
    const std::uint64_t sharing_drives =
        touched_drives >= site.data_drives ? site.drive_count : std::max(touched_drives, arms);
    const double seeks = (request.fragments - 1) * static_cast<double>(arms) / static_cast<double>(sharing_drives);
    return time + multiply_time(one_seek, seeks);
}

/// Least time of a request that is not sequential, from the random operations per second of a drive. Longer requests
/// than a segment count as merged. Without geometry the one drive has the operations of all.
Time min_access_time(const MediumDescription& site, const MediaRequest& request, bool is_sequential) noexcept {
    const std::uint64_t segment = site.segment_bytes > 0 ? site.segment_bytes : Defaults::segment_bytes;
    if (is_sequential || site.access_time == 0 || request.length > segment) {
        return 0;
    }
    return site.segment_bytes > 0 ? site.access_time : site.access_time / std::max(site.drive_count, 1U);
}

/// Counts what a request transfers on each drive alike: full stripes, and half of the changed parity in each direction.
void count_all_drives(Medium& medium, const Medium::DriveBytes& load, bool is_write) noexcept {
    if (load.has_full_stripes) {
        medium.average_drive.add(is_write, load.average_per_drive - load.parity_per_drive);
    }
    medium.average_drive.read_bytes += static_cast<std::uint64_t>(load.parity_per_drive / 2);
    medium.average_drive.written_bytes += static_cast<std::uint64_t>(load.parity_per_drive / 2);
}

/// Counts the part of a partial stripe on one drive. With parity, a write reads half of its bytes first.
void count_drive(Medium& medium, std::size_t drive, double transferred, bool is_write) noexcept {
    const bool rereads = is_write && medium.description.parity_drives > 0;
    if (rereads) {
        medium.drives[drive].add(false, transferred / 2);
    }
    medium.drives[drive].add(is_write, rereads ? transferred / 2 : transferred);
}

/// When the drives complete a request that may begin at `ready`. `rate` is that of all drives together.
ServiceTimes serve_from_drives(Medium& medium, const MediaRequest& request, std::uint64_t shift, DirectedRate rate,
                               double slowdown, Time ready) noexcept {
    const MediumDescription& site = medium.description;
    const std::uint64_t from = request.offset + shift;
    const Medium::DriveBytes load = medium.compute_drive_bytes(from, from + request.length, request.is_write);
    medium.counters.reads += load.partial_stripes;
    medium.counters.read_bytes += load.reread;
    medium.counters.add(request.is_write, static_cast<double>(request.length));
    count_all_drives(medium, load, request.is_write);
    const bool is_sequential = medium.last_object == request.object && medium.last_end == request.offset;
    const auto is_touched = [&load](std::size_t i) { return load.has_full_stripes || load.additional_by_drive[i] > 0; };
    const Time min_time = min_access_time(site, request, is_sequential);
    std::uint64_t touched_drives = 0;
    for (std::size_t i = 0; i < medium.seek_stations.size(); ++i) {
        touched_drives += is_touched(i) ? 1 : 0;
    }
    Time additional_time = seek_time(site, request, is_sequential, touched_drives) +
                           load.partial_stripes * site.partial_stripe_cost + site.request_cost;
    if (medium.last_is_write != request.is_write) {
        additional_time += site.turnaround;
    }
    medium.last_object = request.object;
    medium.last_end = request.offset + request.length;
    medium.last_is_write = request.is_write;
    // A drive has its share of the rate; without geometry, one arm has all of it.
    const double share =
        rate.for_direction(request.is_write) / static_cast<double>(site.segment_bytes > 0 ? site.data_drives : 1);
    ServiceTimes times{ready, ready};
    Time longest = 0;
    for (std::size_t i = 0; i < medium.seek_stations.size(); ++i) {
        const double bytes = load.average_per_drive + load.additional_by_drive[i];
        if (bytes <= 0) {
            continue;
        }
        if (load.additional_by_drive[i] > 0) {
            count_drive(medium, i, load.additional_by_drive[i], request.is_write);
        }
        const Time transfer = transfer_time(bytes, share);
        const Time time = multiply_time(is_touched(i) ? std::max(transfer + additional_time, min_time) : transfer,
                                        i == 0 ? slowdown * medium.first_drive_slowdown : slowdown);
        const SingleServerStation::ServiceInterval service = medium.seek_stations[i].reserve(ready, time);
        if (const Time done = std::max(service.end, add_time(service.start, multiply_time(site.latency, slowdown)));
            is_touched(i) && done >= times.done) {
            times.done = done;
            longest = time;
        }
    }
    // A long read is sent stripe by stripe while the drives read on.
    const std::uint64_t stripe = site.segment_bytes * site.data_drives;
    times.first_byte = times.done;
    if (!request.is_write && stripe > 0 && request.length > stripe) {
        const double remaining = 1 - static_cast<double>(stripe) / static_cast<double>(request.length);
        times.first_byte -= static_cast<Time>(static_cast<double>(longest) * remaining);
    }
    return times;
}

}  // namespace

Link::LinkTransit Link::transmit_message(Time head, Time tail, std::uint64_t length, bool is_write) noexcept {
    bytes[is_write ? 1 : 0] += length;
    messages[is_write ? 1 : 0] += 1;
    const double rate = description.rate.for_direction(is_write);
    const Time time = multiply_time(description.request_cost + transfer_time(static_cast<double>(length), rate),
                                    slowdown * noise.factor(head));
    const SingleServerStation::ServiceInterval service =
        directions[is_write || description.half_duplex ? 1 : 0].reserve(head, time);
    return {add_time(service.start, description.latency), add_time(std::max(service.end, tail), description.latency)};
}

Medium::DriveBytes Medium::compute_drive_bytes(std::uint64_t from, std::uint64_t until, bool is_write) const noexcept {
    const std::uint64_t stripe = description.segment_bytes * description.data_drives,
                        drive_count = description.data_drives + description.parity_drives;
    DriveBytes load;
    if (stripe == 0) {
        load.has_full_stripes = true;
        load.average_per_drive = static_cast<double>(until - from);
        return load;
    }
    const std::uint64_t first_full = (from + stripe - 1) / stripe;
    const std::uint64_t last_full = until / stripe;
    double parity = 0;
    const auto add_partial_stripe = [&](std::uint64_t a, std::uint64_t b) {
        std::uint64_t longest = 0;
        for (std::uint64_t offset = a; offset < b;) {
            const std::uint64_t end = std::min(b, (offset / description.segment_bytes + 1) * description.segment_bytes);
            const auto bytes = static_cast<double>(end - offset);
            // A write reads old data and old parity from the drives of the new ones. Parity rotates by stripe so that
            // data continues on the next drive (md: left-symmetric).
            const std::uint64_t shift = description.parity_drives > 0 ? drive_count - offset / stripe % drive_count : 0;
            const std::uint64_t drive =
                (offset / description.segment_bytes % description.data_drives + shift) % drive_count;
            load.additional_by_drive[drive % seek_stations.size()] +=
                is_write && description.parity_drives > 0 ? 2 * bytes : bytes;
            longest = std::max(longest, end - offset);
            offset = end;
        }
        if (is_write && description.parity_drives > 0) {
            ++load.partial_stripes;
            load.reread += b - a + description.parity_drives * longest;
            parity +=
                2.0 * description.parity_drives * static_cast<double>(longest);  // old parity is read, new is written
        }
    };
    if (first_full > last_full) {
        add_partial_stripe(from, until);  // inside one stripe
    } else {
        if (from < first_full * stripe) {
            add_partial_stripe(from, first_full * stripe);
        }
        if (until > last_full * stripe) {
            add_partial_stripe(last_full * stripe, until);
        }
        load.has_full_stripes = last_full > first_full;
        load.average_per_drive = static_cast<double>((last_full - first_full) * description.segment_bytes);
    }
    // Parity rotates over all drives, so each has its share of the accesses.
    load.parity_per_drive = parity / static_cast<double>(drive_count);
    load.average_per_drive += load.parity_per_drive;
    return load;
}

Time Medium::busy_time() const noexcept {
    Time longest = 0;
    for (const SingleServerStation& arm : seek_stations) {
        longest = std::max(longest, arm.busy_time());
    }
    return longest;
}

ServiceTimes serve_request(StorageTarget& target, Medium* medium, const MediaRequest& request, Time now) {
    const double slowdown = target.slowdown * target.noise.factor(now);
    // The queue prepares commands in parallel; data is transferred one request after the other.
    const Time cost = target.description.request_cost + (request.writer_count - 1) * target.description.writer_cost;
    const Time ready = cost > 0 || target.queue.server_count() > 0
                           ? target.queue.reserve(now, multiply_time(cost, slowdown)).end
                           : now;
    const double share = remaining_rate_share(target, medium, request.drive_position);
    ServiceTimes times{ready, ready};
    // If the drives have no rate, the target's rate is the total rate of its drives.
    const bool is_drive_rate = medium != nullptr && medium->description.rate.write <= 0;
    if (const double rate = target.description.rate.for_direction(request.is_write); rate > 0 && !is_drive_rate) {
        const Time time = transfer_time(static_cast<double>(request.length), rate * share);
        times.first_byte = times.done = target.rate_station.reserve(ready, multiply_time(time, slowdown)).end;
    }
    if (medium != nullptr) {
        DirectedRate rate = medium->description.rate;
        if (rate.write <= 0) {
            rate = target.description.rate;
        }
        rate = {rate.read * share, rate.write * share};
        const double drive_slowdown = medium->slowdown * medium->noise.factor(now) * slowdown;
        const ServiceTimes drive_times =
            serve_from_drives(*medium, request, target.slice_misalignment, rate, drive_slowdown, ready);
        times = {std::max(times.first_byte, drive_times.first_byte), std::max(times.done, drive_times.done)};
    }
    return times;
}

}  // namespace sonde::simulate
