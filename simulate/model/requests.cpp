// SPDX-License-Identifier: Apache-2.0
// The way of a request from its client to the drives and back.
#include "model/core.hpp"

#include <algorithm>
#include <bit>

namespace sonde::simulate {

/// Whether a write that ends at `end` needs blocks that the file has not.
bool Core::lengthens(File& file, std::uint64_t end) {
    const bool longer = end > file.allocated;
    file.allocated = std::max(file.allocated, end);
    return longer;
}

Core::Where Core::place_of(const File& file, std::uint64_t offset, std::uint64_t rpc_size) const {
    const Layout& layout = file.layout;
    const std::uint64_t stripe = offset / layout.size;
    const std::uint64_t inside = offset % layout.size;
    Where where;
    where.target = static_cast<std::uint32_t>((layout.start + stripe % layout.count) % targets.size());
    where.object_offset = stripe / layout.count * layout.size + inside;
    where.to_border = std::min(layout.size - inside, rpc_size - where.object_offset % rpc_size);
    return where;
}

std::uint32_t Core::make_request(const Stream& stream, StreamId id, const Where& where, FileId file,
                                 std::uint64_t offset, std::uint64_t length, bool writing, For what) {
    std::uint32_t index = 0;
    if (free_requests.empty()) {
        index = static_cast<std::uint32_t>(requests.size());
        requests.emplace_back();
    } else {
        index = free_requests.back();
        free_requests.pop_back();
    }
    Request& request = requests[index];
    request = Request{};
    request.file_offset = offset;
    request.object_offset = where.object_offset;
    request.length = length;
    request.client = stream.client;
    request.target = where.target;
    request.file = file;
    request.stream = id;
    request.writing = writing;
    request.what = what;
    ++under_way;
    return index;
}

/// On its way when the mount lets its stream have one more under way.
void Core::enqueue(std::uint32_t index) {
    const Request& request = requests[index];
    const std::uint32_t most = request.writing ? site.writes_in_flight : site.reads_in_flight;
    if (most > 0) {
        Turnstile& turnstile = streams[request.stream].turnstile[request.writing ? 1 : 0];
        if (turnstile.under_way >= most) {
            (turnstile.first == none ? turnstile.first : requests[turnstile.last].after) = index;
            turnstile.last = index;
            return;
        }
        ++turnstile.under_way;
    }
    to_target(index);
}

/// A request of a stream is done: the next one of it may go.
void Core::let_next_in(const Request& gone) {
    if ((gone.writing ? site.writes_in_flight : site.reads_in_flight) == 0) {
        return;
    }
    Turnstile& turnstile = streams[gone.stream].turnstile[gone.writing ? 1 : 0];
    const std::uint32_t next = turnstile.first;
    if (next == none) {
        --turnstile.under_way;
        return;
    }
    turnstile.first = requests[next].after;
    to_target(next);
}

/// To its target when the client may have one more under way there.
void Core::to_target(std::uint32_t index) {
    const Request& request = requests[index];
    Client& client = clients[request.client];
    if (client.channels.empty()) {
        client.channels.resize(targets.size());
    }
    Channel& channel = client.channels[request.target];
    const std::uint32_t most = client.site.rpcs_in_flight;
    if (site.fs.local || most == 0 || channel.in_flight < most) {
        send(index);
    } else {
        channel.queued.push_back(index);
    }
}

/// The links that the data of a request passes, from the client on.
void Core::give_way(Request& request) {
    Client& client = clients[request.client];
    Target& target = targets[request.target];
    const auto add = [&request](int link) {
        if (link >= 0 && request.hop_count < std::size(request.hops)) {
            request.hops[request.hop_count++] = link;
        }
    };
    const auto deal = [this](std::size_t choices, std::uint32_t& next_turn) -> std::size_t {
        const std::uint32_t turn = next_turn++;
        if (way_weight <= 1 || choices < 2) {
            return turn % choices;
        }
        // The first one comes so many times as often as another: its turns are spread evenly, and the rest is dealt
        // out.
        const double share = way_weight / (way_weight + static_cast<double>(choices) - 1);
        const auto firsts = [share](std::uint32_t turns) { return static_cast<std::uint32_t>(share * turns); };
        return firsts(turn + 1) > firsts(turn) ? 0 : 1 + (turn - firsts(turn)) % (choices - 1);
    };
    add(client.site.software);
    add(client.site.link);
    if (request.lengthens) {
        add(site.log);
    }
    if (!target.site.paths.empty()) {
        for (const int link : target.site.paths[deal(target.site.paths.size(), target.turn)]) {
            add(link);
        }
        return;
    }
    if (!site.forwarders.empty()) {
        request.forwarder = next_forwarder(client);
        add(site.forwarders[request.forwarder]);
    }
    if (client.site.routed && !routers.empty()) {
        add(static_cast<int>(routers[deal(routers.size(), client.router_turn)]));
    }
    if (target.site.server >= 0) {
        const Server& server = servers[static_cast<std::size_t>(target.site.server)];
        add(server.site.link);
        add(server.rate_link);
    }
}

/// A client deals its calls to all forwarders in turn, as the plan of routes takes it
/// (lab/sonde/design/routes/paths.py).
std::uint32_t Core::next_forwarder(Client& client) const {
    return site.forwarders.empty() ? 0 : client.forwarder_turn++ % static_cast<std::uint32_t>(site.forwarders.size());
}

/// When a thread of the forwarder that has a call at `at` has made it; `at` where nothing is forwarded.
Time Core::forwarded(std::uint32_t forwarder, Time at) {
    return site.forwarders.empty() || site.forward_cost == 0 ? at
                                                             : forwarders[forwarder].reserve(at, site.forward_cost).end;
}

/// One way of a message without data.
Time Core::message_time(const Request& request) const {
    Time time = 0;
    for (std::size_t i = 0; i < request.hop_count; ++i) {
        const LinkSite& link = links[static_cast<std::size_t>(request.hops[i])].site;
        time += link.latency + link.request_cost;
    }
    return time;
}

void Core::send(std::uint32_t index) {
    Request& request = requests[index];
    Client& client = clients[request.client];
    Channel& channel = client.channels[request.target];
    if (channel.in_flight++ == 0) {
        ++targets[request.target].active_clients;
    }
    give_way(request);
    request.sent = now;
    Time at = now;
    if (request.what == For::write_behind && client.site.write_behind > 0) {
        at = client.flusher.reserve(now, time_for(static_cast<double>(request.length), client.site.write_behind)).end;
    }
    at = forwarded(request.forwarder, at);
    request.tail = at;
    if (!request.writing) {
        push(later(at, message_time(request)), Happens::at_server, index);
    } else if (request.hop_count == 0) {
        push(at, Happens::at_server, index);
    } else if (at > now) {
        push(at, Happens::hop, index);
    } else {
        next_hop(index);
    }
}

/// The first byte is at the next link, towards storage when writing and back when reading.
void Core::next_hop(std::uint32_t index) {
    Request& request = requests[index];
    const std::size_t place = request.writing ? request.hop : request.hop_count - 1U - request.hop;
    Link& link = links[static_cast<std::size_t>(request.hops[place])];
    const Link::Passage passage = link.pass(now, request.tail, request.length, request.writing);
    request.tail = passage.tail;
    if (++request.hop < request.hop_count) {
        push(passage.head, Happens::hop, index);
    } else {
        push(passage.tail, request.writing ? Happens::at_server : Happens::arrived, index);
    }
}

/// A lock on what is touched: granted, or taken from another client. One at a time at each target.
Time Core::locks(const Request& request, Time at) {
    File& file = files[request.file];
    const std::uint64_t unit = site.fs.lock_unit;
    if (unit == 0) {
        return at;
    }
    const std::uint64_t last = (request.file_offset + request.length - 1) / unit;
    if (file.lock_holders.size() <= last) {
        file.lock_holders.resize(std::max<std::size_t>(last + 1, file.lock_holders.size() * 2), 0);
    }
    Time cost = 0;
    for (std::uint64_t i = request.file_offset / unit; i <= last; ++i) {
        std::uint32_t& holder = file.lock_holders[i];
        const std::uint32_t me = request.client + 1;
        if (holder != 0 && holder != me) {
            cost += site.fs.revoke_cost;
        } else if (holder == 0 && request.writing) {
            cost += site.fs.lock_cost;
        }
        holder = request.writing ? me : holder == me ? me : 0;
    }
    return cost > 0 ? targets[request.target].locks.reserve(at, cost).end : at;
}

void Core::at_server(std::uint32_t index) {
    Request& request = requests[index];
    request.at_server = now;
    Target& target = targets[request.target];
    Time at = now;
    if (target.site.server >= 0) {
        Server& server = servers[static_cast<std::size_t>(target.site.server)];
        if (server.site.request_cost > 0) {
            const double factor = server.factor * server.weather.factor(now);
            at = server.threads.reserve(now, static_cast<Time>(static_cast<double>(server.site.request_cost) * factor))
                     .end;
        }
        const File& file = files[request.file];
        const bool kept = server.cache.capacity() > 0 && file.size <= server.site.cache_max_file;
        const std::uint64_t object = std::uint64_t{request.file} << 20U | request.target;
        const std::uint64_t end = request.object_offset + request.length;
        if (kept && !request.writing && server.cache.held_to(object, request.object_offset) >= end) {
            traces.targets[request.target].cache_hits += request.length / page;
            at = locks(request, at);
            request.tail = at;
            push(at, Happens::media_done, index);
            return;
        }
        if (kept) {
            traces.targets[request.target].cache_misses += request.writing ? 0 : request.length / page;
            server.cache.insert(object, request.object_offset, end);
        }
    }
    at = locks(request, at);
    if (at > now) {
        push(at, Happens::at_media, index);
    } else {
        at_media(index);
    }
}

void Core::at_media(std::uint32_t index) {
    Request& request = requests[index];
    Target& target = targets[request.target];
    if (target.retry_share > 0 && !request.tried_again && chance.uniform() < target.retry_share) {
        // Half a second until a drive's command is tried again: the error recovery of a disk takes that long or longer.
        request.tried_again = true;
        ++traces.targets[request.target].retries;
        if (traces.targets[request.target].retries % 16 == 1) {
            const std::string host = target.site.server >= 0
                                         ? servers[static_cast<std::size_t>(target.site.server)].site.id
                                         : clients.front().site.id;
            say(host, "blk_update_request: I/O error, dev " + target.site.id + ", sector " +
                          std::to_string(request.object_offset / 512));
        }
        push(later(now, 500'000'000), Happens::at_media, index);
        return;
    }
    const File& file = files[request.file];
    MediaRequest media_request;
    media_request.object = request.file;
    media_request.offset = request.object_offset;
    media_request.length = request.length;
    media_request.writing = request.writing;
    media_request.position = file.position;
    media_request.pieces =
        file.pieces <= 1 ? 1 : 1 + static_cast<std::uint32_t>((file.pieces - 1) * request.length / (1ULL << 20U));
    media_request.writers = std::max(file.writers, 1U);
    Medium* medium = target.site.medium >= 0 ? &media[static_cast<std::size_t>(target.site.medium)] : nullptr;
    const Served served = serve(target, medium, media_request, now);
    request.tail = served.done;
    push(request.writing || request.hop_count == 0 ? served.done : served.first, Happens::media_done, index);
}

void Core::count(const Request& request) {
    TargetTrace& trace = traces.targets[request.target];
    const std::size_t pages = std::bit_width(std::max<std::uint64_t>(request.length / page, 1)) - 1;
    const auto us = static_cast<std::uint64_t>((request.tail - request.at_server) / 1000);
    (request.writing ? trace.write_bytes : trace.read_bytes).add(request.length);
    (request.writing ? trace.write_us : trace.read_us).add(us);
    auto& histogram = request.writing ? trace.write_pages : trace.read_pages;
    ++histogram[std::min(pages, histogram.size() - 1)];
}

void Core::media_done(std::uint32_t index) {
    Request& request = requests[index];
    count(request);
    if (request.writing || request.hop_count == 0) {
        const Time answer = message_time(request);
        if (answer > 0) {
            push(later(now, answer), Happens::arrived, index);
        } else {
            arrived(index);
        }
        return;
    }
    next_hop(index);
}

void Core::arrived(std::uint32_t index) {
    const Request request = requests[index];
    free_requests.push_back(index);
    --under_way;
    Client& client = clients[request.client];
    Channel& channel = client.channels[request.target];
    if (--channel.in_flight == 0) {
        --targets[request.target].active_clients;
    }
    if (!channel.queued.empty()) {
        const std::uint32_t next = channel.queued.front();
        channel.queued.pop_front();
        send(next);
    }
    let_next_in(request);
    switch (request.what) {
        case For::call:
            if (--calls[request.call].requests == 0) {
                finish(request.call, now);
            }
            return;
        case For::write_behind:
            return written_back(request);
        case For::read_ahead:
            return fetched(request);
    }
}

}  // namespace sonde::simulate
