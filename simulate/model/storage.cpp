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

/// Time of arms that a request does not find where they must be. Each of those that it touches moves, whatever the
/// others do; without geometry all drives are one, and an average.
Time time_of_moves(const MediumSite& site, const MediaRequest& request, bool follows, std::uint64_t touched) noexcept {
    const std::uint64_t segment = site.segment > 0 ? site.segment : Defaults::segment;
    const Time move = site.seek + site.rotation / 2;
    Time time = 0;
    if (!follows && site.seek > 0 && (!site.elevator || request.length <= segment)) {
        const auto reached = std::min<std::uint64_t>((request.length + segment - 1) / segment, site.drives);
        time += site.segment > 0 ? move : scaled(move, static_cast<double>(reached) / site.drives);
    }
    // Each further piece is a move of the arms that it lies on; parity takes its part of them.
    const std::uint64_t piece = request.length / std::max(request.pieces, 1U);
    const auto arms = std::clamp<std::uint64_t>((piece + segment - 1) / segment, 1, site.drives);
    const std::uint64_t shared_by = touched >= site.data ? site.drives : std::max(touched, arms);
    const double moves = (request.pieces - 1) * static_cast<double>(arms) / static_cast<double>(shared_by);
    return time + scaled(move, moves);
}

/// When the drives have done a request that may begin at `ready`, at `rate` of all of them together.
Served of_drives(Medium& medium, const MediaRequest& request, std::uint64_t shift, DirectedRate rate, double rough,
                 Time ready) noexcept {
    const MediumSite& site = medium.site;
    const std::uint64_t from = request.offset + shift;
    const Medium::Load load = medium.load_of(from, from + request.length, request.writing);
    medium.reads += load.partial + (request.writing ? 0 : 1);
    medium.read_bytes += load.reread + (request.writing ? 0 : request.length);
    medium.writes += request.writing ? 1 : 0;
    medium.written_bytes += request.writing ? request.length : 0;
    const bool follows = medium.last_object == request.object && medium.last_end == request.offset;
    const auto asked = [&load](std::size_t i) { return load.whole || load.more[i] > 0; };
    std::uint64_t touched = 0;
    for (std::size_t i = 0; i < medium.arms.size(); ++i) {
        touched += asked(i) ? 1 : 0;
    }
    Time beside = time_of_moves(site, request, follows, touched) + load.partial * site.partial_stripe_cost;
    if (medium.last_write != request.writing) {
        beside += site.turnaround;
    }
    medium.last_object = request.object;
    medium.last_end = request.offset + request.length;
    medium.last_write = request.writing;
    // One drive has its part of the rate of all; without geometry there is one arm, and it has all of it.
    const double share = rate.of(request.writing) / static_cast<double>(site.segment > 0 ? site.data : 1);
    Served served{ready, ready};
    Time longest = 0;
    for (std::size_t i = 0; i < medium.arms.size(); ++i) {
        const double bytes = load.each + load.more[i];
        if (bytes <= 0) {
            continue;
        }
        const Time time = scaled(time_for(bytes, share) + (asked(i) ? beside : 0), rough);
        const Time done = medium.arms[i].reserve(ready, time).end;
        if (asked(i) && done >= served.done) {
            served.done = done;
            longest = time;
        }
    }
    // A long read leaves stripe by stripe while the drives go on.
    const std::uint64_t stripe = site.segment * site.data;
    served.first = served.done;
    if (!request.writing && stripe > 0 && request.length > stripe) {
        const double left = 1 - static_cast<double>(stripe) / static_cast<double>(request.length);
        served.first -= static_cast<Time>(static_cast<double>(longest) * left);
    }
    return served;
}

}  // namespace

Link::Passage Link::pass(Time head, Time tail, std::uint64_t length, bool writing) noexcept {
    bytes[writing ? 1 : 0] += length;
    const double rate = site.rate.of(writing);
    const Time time =
        scaled(site.request_cost + time_for(static_cast<double>(length), rate), factor * weather.factor(head));
    const Fifo::Service service = way[writing || site.half_duplex ? 1 : 0].reserve(head, time);
    return {later(service.start, site.latency), later(std::max(service.end, tail), site.latency)};
}

Medium::Load Medium::load_of(std::uint64_t from, std::uint64_t to, bool writing) const noexcept {
    const std::uint64_t stripe = site.segment * site.data;
    Load load;
    if (stripe == 0) {
        load.whole = true;
        load.each = static_cast<double>(to - from);
        return load;
    }
    const std::uint64_t first_whole = (from + stripe - 1) / stripe;
    const std::uint64_t last_whole = to / stripe;
    double parity = 0;
    const auto part = [&](std::uint64_t a, std::uint64_t b) {
        std::uint64_t longest = 0;
        for (std::uint64_t at = a; at < b;) {
            const std::uint64_t end = std::min(b, (at / site.segment + 1) * site.segment);
            const auto bytes = static_cast<double>(end - at);
            // Old data is read from where new data goes, and old parity from where new parity goes.
            load.more[at / site.segment % site.data % arms.size()] += writing && site.parity ? 2 * bytes : bytes;
            longest = std::max(longest, end - at);
            at = end;
        }
        if (writing && site.parity) {
            ++load.partial;
            load.reread += b - a + longest;
            parity += static_cast<double>(longest);  // a whole stripe has its parity in the rate already
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
        load.whole = last_whole > first_whole;
        load.each = static_cast<double>((last_whole - first_whole) * site.segment);
    }
    // Parity goes round all drives, so each has its share of the additional accesses.
    load.each += parity / (static_cast<double>(site.data) + 1);
    return load;
}

Time Medium::busy() const noexcept {
    Time most = 0;
    for (const Fifo& arm : arms) {
        most = std::max(most, arm.busy());
    }
    return most;
}

Served serve(Target& target, Medium* medium, const MediaRequest& request, Time now) {
    const double slow = target.factor * target.weather.factor(now);
    // Commands are prepared side by side, as many as the queue takes; the bytes go one request after the other.
    const Time cost = target.site.request_cost + (request.writers - 1) * target.site.writer_cost;
    const Time ready = cost > 0 || target.queue.count() > 0 ? target.queue.reserve(now, scaled(cost, slow)).end : now;
    const double share = share_of_rate(target, medium, request.position);
    Served served{ready, ready};
    const bool drives_say = medium != nullptr && medium->site.rate.write <= 0;  // then it is the rate of its drives
    if (const double rate = target.site.rate.of(request.writing); rate > 0 && !drives_say) {
        const Time time = time_for(static_cast<double>(request.length), rate * share);
        served.first = served.done = target.rate.reserve(ready, scaled(time, slow)).end;
    }
    if (medium != nullptr) {
        DirectedRate rate = medium->site.rate;
        if (rate.write <= 0) {
            rate = target.site.rate;  // the target says what its drives do together
        }
        rate = {rate.read * share, rate.write * share};
        const double rough = medium->factor * medium->weather.factor(now) * slow;
        const Served below = of_drives(*medium, request, target.shift, rate, rough, ready);
        served = {std::max(served.first, below.first), std::max(served.done, below.done)};
    }
    return served;
}

}  // namespace sonde::simulate
