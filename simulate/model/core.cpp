// SPDX-License-Identifier: Apache-2.0
#include "model/core.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace sonde::simulate {
namespace {

/// As Lustre writes the names of targets.
std::string lustre_name(const SiteModel& site, const TargetSite& target) {
    if (site.fs.kind != "lustre") {
        return target.id;
    }
    char number[16];
    std::snprintf(number, sizeof number, "-OST%04x", target.index);
    return site.fs.id + number;
}

}  // namespace

Core::Core(SiteModel of, const Machine::Options& how, Listener& who)
    : site(std::move(of)), options(how), listener(who), chance(how.seed, 0x6d616368696e65ULL) {
    std::uint64_t part = 1;
    for (ServerSite& server : site.servers) {
        servers.emplace_back(server, how.seed, ++part);
        if (server.rate.write > 0 || server.rate.read > 0) {
            LinkSite limit;
            limit.id = server.id;
            limit.rate = server.rate;
            servers.back().rate_link = static_cast<int>(site.links.size());
            site.links.push_back(limit);
        }
    }
    for (const LinkSite& link : site.links) {
        links.emplace_back(link, how.seed, ++part);
    }
    for (const MediumSite& medium : site.media) {
        media.emplace_back(medium, how.seed, ++part);
        traces.media.push_back({medium.id, {}, {}, {}, {}, {}});
    }
    for (const TargetSite& target : site.targets) {
        targets.emplace_back(target, how.seed, ++part);
        traces.targets.push_back({});
        traces.targets.back().id = target.id;
        traces.targets.back().name = lustre_name(site, target);
        traces.targets.back().capacity = target.capacity;
    }
    traces.file_system = site.fs.id;
    for (const int server : site.metadata_servers) {
        traces.metadata.push_back({site.servers[static_cast<std::size_t>(server)].id, {}});
    }
    clients.reserve(site.clients.size());
    for (const ClientSite& client : site.clients) {
        clients.emplace_back();
        clients.back().site = client;
        clients.back().pages = ExtentCache(client.page_cache);
        clients.back().factor = client.slowdown;
        clients.back().forwarder_turn = static_cast<std::uint32_t>(clients.size() - 1);  // not all at the same one
        traces.nodes.push_back({client.id, {}, {}, {}, {}, {}});
    }
    for (const int router : site.routers) {
        const std::uint32_t weight = site.links[static_cast<std::size_t>(router)].weight;
        routers.insert(routers.end(), weight, static_cast<std::uint32_t>(router));
    }
    forwarders.assign(site.forwarders.size(), Slots(site.forward_threads));
    cached_page_cost_s = site.fs.cached_page_cost_s;
    next_start = chance.below(targets.size());
    if (options.sample > 0) {
        push(options.sample, Happens::sample, 0);
        sample();
    }
}

void Core::handle(const Event& event) {
    now = event.at;
    ++handled;
    switch (static_cast<Happens>(event.kind)) {
        case Happens::begin:
            return begin(event.subject);
        case Happens::hop:
            return next_hop(event.subject);
        case Happens::at_server:
            return at_server(event.subject);
        case Happens::at_media:
            return at_media(event.subject);
        case Happens::media_done:
            return media_done(event.subject);
        case Happens::arrived:
            return arrived(event.subject);
        case Happens::names:
            return at_names(event.subject);
        case Happens::names_done:
            return finish(event.subject, now);
        case Happens::wake: {
            const std::uint64_t tag = alarms[event.subject];
            free_alarms.push_back(event.subject);
            return listener.woken(now, tag);
        }
        case Happens::neighbour:
            return neighbour(event.subject);
        case Happens::sample:
            push(later(now, options.sample), Happens::sample, 0);
            return sample();
        case Happens::fault:
            return begin_planned(event.subject);
    }
}

/// Processor time of a call on its client.
Time Core::cost_of(const Client& client, const Operation& operation) const {
    Time cost = client.site.call_cost;
    const bool moves = operation.call == Call::read || operation.call == Call::write;
    if (moves && !operation.direct) {
        cost += time_for(static_cast<double>(operation.length), client.site.copy_rate);
        // Where the cache is full, each page that comes needs one that goes.
        if (client.site.evict_cost > 0 && client.pages.bytes() + page > client.pages.capacity()) {
            cost += static_cast<Time>(operation.length / page) * client.site.evict_cost;
        }
    }
    return client.factor == 1 ? cost : static_cast<Time>(static_cast<double>(cost) * client.factor);
}

void Core::submit(Time at, const Operation& operation) {
    std::uint32_t call = 0;
    if (free_calls.empty()) {
        call = static_cast<std::uint32_t>(calls.size());
        calls.emplace_back();
    } else {
        call = free_calls.back();
        free_calls.pop_back();
    }
    Stream& stream = streams[operation.stream];
    PendingCall& pending = calls[call];
    pending = PendingCall{};
    pending.operation = operation;
    pending.called = std::max(at, now);
    pending.cpu = cost_of(clients[stream.client], operation);
    ++under_way;
    push(stream.cpu.reserve(std::max(at, now), pending.cpu).end, Happens::begin, call);
}

std::optional<Done> Core::at_once(Time at, const Operation& operation) {
    if (operation.direct || operation.sync) {
        return std::nullopt;
    }
    Stream& stream = streams[operation.stream];
    const std::uint64_t end = operation.offset + operation.length;
    if (operation.call == Call::write) {
        Piece& piece = stream.piece;
        // The last byte of a piece sends it on its way, which others notice.
        if (!piece.open || piece.file != operation.file || piece.file_at != operation.offset || end >= piece.file_end) {
            return std::nullopt;
        }
        piece.file_at = end;
        File& file = files[operation.file];
        file.size = std::max(file.size, end);
    } else if (operation.call == Call::read) {
        if (stream.file != operation.file || operation.offset < stream.ready_from || end > stream.ready_to ||
            cached_page_cost_s > 0) {
            return std::nullopt;
        }
        stream.next = end;
    } else {
        return std::nullopt;
    }
    const Time cpu = cost_of(clients[stream.client], operation);
    const Time over = stream.cpu.reserve(at, cpu).end;
    traces.nodes[stream.client].add(operation, operation.length, over - at);
    return Done{operation.tag, over, cpu};
}

void Core::begin(std::uint32_t call) {
    const Operation& operation = calls[call].operation;
    switch (operation.call) {
        case Call::write:
            if (operation.direct || operation.sync) {
                return begin_direct(call);
            }
            if (!continue_write(call)) {
                wait_for_room(call);
            }
            return;
        case Call::read:
            return operation.direct ? begin_direct(call) : begin_read(call);
        case Call::fsync:
            return begin_fsync(call);
        case Call::close:
            seal(operation.stream);
            end_writing(streams[operation.stream]);
            return begin_names(call);
        default:
            return begin_names(call);
    }
}

/// Bytes: a read ends with the file.
std::uint64_t Core::moved_by(const Operation& operation) const {
    const std::uint64_t size = files[operation.file].size;
    return operation.call != Call::read ? operation.length
                                        : std::min(operation.length, size - std::min(size, operation.offset));
}

void Core::finish(std::uint32_t call, Time at) {
    const PendingCall& pending = calls[call];
    traces.nodes[streams[pending.operation.stream].client].add(pending.operation, moved_by(pending.operation),
                                                               at - pending.called);
    const Done done{pending.operation.tag, at, pending.cpu};
    free_calls.push_back(call);
    --under_way;
    listener.done(done);
}

void Core::sample() {
    count_others();
    Sample row;
    row.at = now;
    for (const TargetTrace& target : traces.targets) {
        row.read.push_back(target.read_bytes.sum);
        row.written.push_back(target.write_bytes.sum);
    }
    traces.samples.push_back(std::move(row));
}

/// What is not counted when it happens: calls of others, drives, and the space that is left.
void Core::bring_counters_up_to_date() {
    count_others();
    for (std::size_t i = 0; i < media.size(); ++i) {
        const Medium& medium = media[i];
        traces.media[i] = {medium.site.id, medium.reads,         medium.read_bytes,
                           medium.writes,  medium.written_bytes, medium.busy()};
    }
}

void Core::count_space() {
    std::vector<std::uint64_t> held(targets.size(), 0);
    for (const auto& [name, id] : names) {
        const File& file = files[id];
        const std::uint64_t stripes = file.size / file.layout.size;
        for (std::uint32_t k = 0; file.size > 0 && k < file.layout.count; ++k) {
            const std::uint64_t whole = stripes / file.layout.count + (k < stripes % file.layout.count ? 1 : 0);
            const std::uint64_t rest = k == stripes % file.layout.count ? file.size % file.layout.size : 0;
            held[(file.layout.start + k) % targets.size()] += whole * file.layout.size + rest;
        }
    }
    const double used = full_share >= 0 ? full_share : site.fs.used;
    for (std::size_t i = 0; i < targets.size(); ++i) {
        const auto room =
            static_cast<std::uint64_t>(std::llround(static_cast<double>(traces.targets[i].capacity) * (1 - used)));
        traces.targets[i].space = room - std::min(room, held[i]);
    }
}

void Core::say(const std::string& host, const std::string& text) {
    traces.messages.push_back({now, host, text});
}

}  // namespace sonde::simulate
