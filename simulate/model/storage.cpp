// SPDX-License-Identifier: Apache-2.0
#include "model/storage.hpp"

#include <algorithm>

namespace sonde::simulate {
namespace {

/// What is left of the rate of a target: by the place on the drives, a missing drive and its rebuild.
double share_of_rate(const Target& target, const Medium* medium, double position) noexcept {
    double share = 1;
    if (medium != nullptr) {
        share *= 1 - (1 - medium->site.inner_rate) * position;
    }
    if (target.rebuild_share > 0) {
        share *= (1 - target.rebuild_share) * (medium != nullptr ? medium->site.degraded_share : 0.8);
    }
    // 1 / (1 + c (n - 1)): each further client takes a share c of what one has, and none can take all.
    return share / (1 + target.site.contention * (std::max(target.active_clients, 1U) - 1));
}

/// Time of the drives: their bytes, and how far the arms have to move.
Time drive_time(Medium& medium, const MediaRequest& request, std::uint64_t shift, DirectedRate rate) noexcept {
    const MediumSite& site = medium.site;
    const std::uint64_t from = request.offset + shift;
    const Medium::Load load = medium.load_of(from, from + request.length, request.writing);
    const double stripe = site.segment > 0 ? static_cast<double>(site.segment) * site.data : 1.0;
    Time time = time_for(load.stripes * stripe, rate.of(request.writing));
    time += load.partial * site.partial_stripe_cost;
    medium.reads += load.partial + (request.writing ? 0 : 1);
    medium.read_bytes += load.reread + (request.writing ? 0 : request.length);
    medium.writes += request.writing ? 1 : 0;
    medium.written_bytes += request.writing ? request.length : 0;
    const bool follows = medium.last_object == request.object && medium.last_end == request.offset;
    // Small requests move the arm of one drive while the others do something else.
    const std::uint64_t segment = site.segment > 0 ? site.segment : Defaults::segment;
    const auto touched = std::min<std::uint64_t>((request.length + segment - 1) / segment, site.drives);
    if (!follows && site.seek > 0 && (!site.elevator || request.length <= segment)) {
        time += (site.seek + site.rotation / 2) * static_cast<Time>(touched) / site.drives;
    }
    // Each further piece is a move of the arms that it lies on.
    const std::uint64_t piece = request.length / std::max(request.pieces, 1U);
    const auto arms = std::clamp<std::uint64_t>((piece + segment - 1) / segment, 1, site.drives);
    time += (request.pieces - 1) * (site.seek + site.rotation / 2) * static_cast<Time>(arms) / site.drives;
    if (medium.last_write != request.writing) {
        time += site.turnaround;
    }
    medium.last_object = request.object;
    medium.last_end = request.offset + request.length;
    medium.last_write = request.writing;
    return time;
}

}  // namespace

Link::Passage Link::pass(Time head, Time tail, std::uint64_t length, bool writing) noexcept {
    bytes[writing ? 1 : 0] += length;
    const double rate = site.rate.of(writing);
    const Time time =
        scaled(site.request_cost + time_for(static_cast<double>(length), rate), factor * weather.factor(head));
    const Fifo::Service service = way[writing || site.half_duplex ? 1 : 0].reserve(head, time);
    return {service.start + site.latency, std::max(service.end, tail) + site.latency};
}

Medium::Load Medium::load_of(std::uint64_t from, std::uint64_t to, bool writing) const noexcept {
    const std::uint64_t stripe = site.segment * site.data;
    Load load;
    if (stripe == 0) {
        load.stripes = static_cast<double>(to - from);
        return load;
    }
    constexpr std::size_t most = 64;
    std::array<double, most> drive{};  // bytes by data drive
    const std::size_t drives = std::min<std::size_t>(site.data, most);
    const std::uint64_t first_whole = (from + stripe - 1) / stripe;
    const std::uint64_t last_whole = to / stripe;
    double parity = 0;
    const auto part = [&](std::uint64_t a, std::uint64_t b) {
        double longest = 0;
        std::uint64_t parity_bytes = 0;
        for (std::uint64_t at = a; at < b;) {
            const std::uint64_t end = std::min(b, (at / site.segment + 1) * site.segment);
            const auto bytes = static_cast<double>(end - at);
            // Old data is read from where new data goes, and old parity from where new parity goes.
            drive[at / site.segment % site.data % drives] += writing && site.parity ? 2 * bytes : bytes;
            longest = std::max(longest, bytes);
            parity_bytes = std::max(parity_bytes, end - at);
            at = end;
        }
        if (writing && site.parity) {
            ++load.partial;
            load.reread += b - a + parity_bytes;
            parity += 2 * longest - longest;  // a whole stripe has its parity in the rate already
        }
    };
    if (first_whole > last_whole) {
        part(from, to);  // inside one stripe
    } else {
        if (from < first_whole * stripe) {
            part(from, first_whole * stripe);
        }
        if (to > last_whole * stripe) {
            part(last_whole * stripe, to);
        }
        load.stripes = static_cast<double>(last_whole - first_whole);
    }
    const double busiest = *std::max_element(drive.begin(), drive.begin() + static_cast<std::ptrdiff_t>(drives));
    // Parity goes round all drives, so each has its share of the additional accesses.
    load.stripes += (busiest + parity / (static_cast<double>(site.data) + 1)) / static_cast<double>(site.segment);
    return load;
}

Time serve(Target& target, Medium* medium, const MediaRequest& request, Time now) {
    const double slow = target.factor * target.weather.factor(now);
    // Commands are prepared side by side, as many as the queue takes; the bytes go one request after the other.
    const Time cost = target.site.request_cost + (request.writers - 1) * target.site.writer_cost;
    const Time ready = cost > 0 || target.queue.count() > 0 ? target.queue.reserve(now, scaled(cost, slow)).end : now;
    const double share = share_of_rate(target, medium, request.position);
    Time done = ready;
    const bool of_drives = medium != nullptr && medium->site.rate.write <= 0;  // then it is the rate of its drives
    if (const double rate = target.site.rate.of(request.writing); rate > 0 && !of_drives) {
        const Time time = time_for(static_cast<double>(request.length), rate * share);
        done = target.rate.reserve(ready, scaled(time, slow)).end;
    }
    if (medium != nullptr) {
        DirectedRate rate = medium->site.rate;
        if (rate.write <= 0) {
            rate = target.site.rate;  // the target says what its drives do together
        }
        rate = {rate.read * share, rate.write * share};
        const Time time = drive_time(*medium, request, target.shift, rate);
        const double rough = medium->factor * medium->weather.factor(now) * slow;
        done = std::max(done, medium->arm.reserve(ready, scaled(time, rough)).end);
    }
    return done;
}

}  // namespace sonde::simulate
