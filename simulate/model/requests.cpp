// SPDX-License-Identifier: Apache-2.0
// The path of a request from its client to the drives and back.
#include "model/core.hpp"

#include <algorithm>
#include <bit>

namespace sonde::simulate {

/// Allocates blocks up to `end`. Returns whether the file lacked them.
bool Core::extend_allocation(FileState& file, std::uint64_t end) {
    const bool is_longer = end > file.allocated_bytes;
    file.allocated_bytes = std::max(file.allocated_bytes, end);
    return is_longer;
}

StripeLocation Core::locate_stripe(const FileState& file, std::uint64_t offset, std::uint64_t rpc_size) const {
    const ModelLayout& layout = file.layout;
    const std::uint64_t stripe = offset / layout.size;
    const std::uint64_t stripe_offset = offset % layout.size;
    StripeLocation location;
    location.target = static_cast<std::uint32_t>((layout.start + stripe % layout.count) % targets.size());
    location.object_offset = stripe / layout.count * layout.size + stripe_offset;
    location.bytes_to_border = std::min(layout.size - stripe_offset, rpc_size - location.object_offset % rpc_size);
    return location;
}

std::uint32_t Core::create_request(const ClientStream& stream, StreamId id, const StripeLocation& location, FileId file,
                                   std::uint64_t offset, std::uint64_t length, bool is_write, RequestPurpose purpose) {
    std::uint32_t index = 0;
    if (free_requests.empty()) {
        index = static_cast<std::uint32_t>(requests.size());
        requests.emplace_back();
    } else {
        index = free_requests.back();
        free_requests.pop_back();
    }
    StorageRequest& request = requests[index];
    request = StorageRequest{};
    request.file_offset = offset;
    request.object_offset = location.object_offset;
    request.length = length;
    request.client = stream.client;
    request.target = location.target;
    request.file = file;
    request.stream = id;
    request.is_write = is_write;
    request.purpose = purpose;
    ++in_flight_count;
    return index;
}

/// Submits a request to its target, or queues it while its stream has the maximum in flight.
void Core::enqueue_request(std::uint32_t index) {
    const StorageRequest& request = requests[index];
    const std::uint32_t limit = request.is_write ? site.writes_in_flight : site.reads_in_flight;
    if (limit > 0) {
        InFlightLimit& stream_limit = streams[request.stream].in_flight_limit[request.is_write ? 1 : 0];
        if (stream_limit.in_flight >= limit) {
            (stream_limit.first_waiting == none ? stream_limit.first_waiting
                                                : requests[stream_limit.last_waiting].next_waiting) = index;
            stream_limit.last_waiting = index;
            return;
        }
        ++stream_limit.in_flight;
    }
    submit_to_target(index);
}

/// Submits the next waiting request of the stream of a finished one.
void Core::release_stream_slot(const StorageRequest& finished) {
    if ((finished.is_write ? site.writes_in_flight : site.reads_in_flight) == 0) {
        return;
    }
    InFlightLimit& stream_limit = streams[finished.stream].in_flight_limit[finished.is_write ? 1 : 0];
    const std::uint32_t next = stream_limit.first_waiting;
    if (next == none) {
        --stream_limit.in_flight;
        return;
    }
    stream_limit.first_waiting = requests[next].next_waiting;
    submit_to_target(next);
}

/// Sends a request, or queues it while its client has the maximum in flight to the target.
void Core::submit_to_target(std::uint32_t index) {
    const StorageRequest& request = requests[index];
    Client& client = clients[request.client];
    if (client.target_queues.empty()) {
        client.target_queues.resize(targets.size());
    }
    TargetQueue& target_queue = client.target_queues[request.target];
    const std::uint32_t limit = client.site.rpcs_in_flight;
    if (site.fs.local || limit == 0 || target_queue.in_flight < limit) {
        send_request(index);
    } else {
        target_queue.queued_requests.push_back(index);
    }
}

/// Chooses the links of a request, from the client on.
void Core::choose_route(StorageRequest& request) {
    Client& client = clients[request.client];
    StorageTarget& target = targets[request.target];
    const auto add = [&request](int link) {
        if (link >= 0 && request.hop_count < std::size(request.hops)) {
            request.hops[request.hop_count++] = link;
        }
    };
    const auto choose_path = [this](std::size_t choices, std::uint32_t& next_turn) -> std::size_t {
        const std::uint32_t turn = next_turn++;
        if (first_route_weight <= 1 || choices < 2) {
            return turn % choices;
        }
        // The first path gets `share` of the turns, evenly spread; the others get the rest in turn.
        const double share = first_route_weight / (first_route_weight + static_cast<double>(choices) - 1);
        const auto first_turns = [share](std::uint32_t turns) { return static_cast<std::uint32_t>(share * turns); };
        return first_turns(turn + 1) > first_turns(turn) ? 0 : 1 + (turn - first_turns(turn)) % (choices - 1);
    };
    add(client.site.software);
    add(client.site.link);
    if (request.extends_file) {
        add(site.log);
    }
    if (!target.site.paths.empty()) {
        for (const int link : target.site.paths[choose_path(target.site.paths.size(), target.path_turn)]) {
            add(link);
        }
        return;
    }
    if (!site.forwarders.empty()) {
        request.forwarder = choose_forwarder(client);
        add(site.forwarders[request.forwarder]);
    }
    if (client.site.routed && !routers.empty()) {
        add(static_cast<int>(routers[choose_path(routers.size(), client.router_turn)]));
    }
    if (target.site.server >= 0) {
        const Server& server = servers[static_cast<std::size_t>(target.site.server)];
        add(server.site.link);
        add(server.rate_link);
    }
}

/// A client uses all forwarders in turn, as the planner of routes assumes (lab/sonde/design/routes/paths.py).
std::uint32_t Core::choose_forwarder(Client& client) const {
    return site.forwarders.empty() ? 0 : client.forwarder_turn++ % static_cast<std::uint32_t>(site.forwarders.size());
}

/// When a thread of the forwarder has forwarded a call that arrives at that time; `arrival` without forwarders.
Time Core::reserve_forwarder(std::uint32_t forwarder, Time arrival) {
    return site.forwarders.empty() || site.forward_cost == 0
               ? arrival
               : forwarders[forwarder].reserve(arrival, site.forward_cost).end;
}

/// Time of a message without data, in one direction.
Time Core::message_time(const StorageRequest& request) const {
    Time time = 0;
    for (std::size_t i = 0; i < request.hop_count; ++i) {
        const LinkSite& link = links[static_cast<std::size_t>(request.hops[i])].site;
        time += link.latency + link.request_cost;
    }
    return time;
}

void Core::send_request(std::uint32_t index) {
    StorageRequest& request = requests[index];
    Client& client = clients[request.client];
    TargetQueue& target_queue = client.target_queues[request.target];
    if (target_queue.in_flight++ == 0) {
        ++targets[request.target].active_clients;
    }
    choose_route(request);
    Time send_time = now;
    if (request.purpose == RequestPurpose::write_behind && client.site.write_behind > 0) {
        send_time =
            client.flusher.reserve(now, transfer_time(static_cast<double>(request.length), client.site.write_behind))
                .end;
    }
    send_time = reserve_forwarder(request.forwarder, send_time);
    request.tail = send_time;
    if (!request.is_write) {
        push(add_time(send_time, message_time(request)), EventKind::at_server, index);
    } else if (request.hop_count == 0) {
        push(send_time, EventKind::at_server, index);
    } else if (send_time > now) {
        push(send_time, EventKind::next_link, index);
    } else {
        pass_next_link(index);
    }
}

/// Passes the next link: towards storage for a write, towards the client for a read.
void Core::pass_next_link(std::uint32_t index) {
    StorageRequest& request = requests[index];
    const std::size_t hop = request.is_write ? request.hop : request.hop_count - 1U - request.hop;
    Link& link = links[static_cast<std::size_t>(request.hops[hop])];
    const Link::Passage passage = link.pass_message(now, request.tail, request.length, request.is_write);
    request.tail = passage.tail;
    if (++request.hop < request.hop_count) {
        push(passage.head, EventKind::next_link, index);
    } else {
        push(passage.tail, request.is_write ? EventKind::at_server : EventKind::at_client, index);
    }
}

/// When the locks of a request are granted, or revoked from other clients. A target grants one lock at a time.
Time Core::acquire_locks(const StorageRequest& request, Time arrival) {
    FileState& file = files[request.file];
    const std::uint64_t unit = site.fs.lock_unit;
    if (unit == 0) {
        return arrival;
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
        } else if (holder == 0 && request.is_write) {
            cost += site.fs.lock_cost;
        }
        holder = request.is_write ? me : holder == me ? me : 0;
    }
    return cost > 0 ? targets[request.target].lock_manager.reserve(arrival, cost).end : arrival;
}

void Core::receive_at_server(std::uint32_t index) {
    StorageRequest& request = requests[index];
    request.server_arrival = now;
    StorageTarget& target = targets[request.target];
    Time ready_time = now;
    if (target.site.server >= 0) {
        Server& server = servers[static_cast<std::size_t>(target.site.server)];
        if (server.site.request_cost > 0) {
            const double factor = server.slowdown * server.noise.factor(now);
            ready_time =
                server.threads.reserve(now, static_cast<Time>(static_cast<double>(server.site.request_cost) * factor))
                    .end;
        }
        const FileState& file = files[request.file];
        const bool is_cacheable = server.cache.capacity() > 0 && file.size <= server.site.cache_max_file;
        const std::uint64_t object = std::uint64_t{request.file} << 20U | request.target;
        const std::uint64_t end = request.object_offset + request.length;
        if (is_cacheable && !request.is_write && server.cache.cached_until(object, request.object_offset) >= end) {
            traces.targets[request.target].cache_hits += request.length / page_bytes;
            ready_time = acquire_locks(request, ready_time);
            request.tail = ready_time;
            push(ready_time, EventKind::media_done, index);
            return;
        }
        if (is_cacheable) {
            traces.targets[request.target].cache_misses += request.is_write ? 0 : request.length / page_bytes;
            server.cache.insert(object, request.object_offset, end);
        }
    }
    ready_time = acquire_locks(request, ready_time);
    if (ready_time > now) {
        push(ready_time, EventKind::at_media, index);
    } else {
        submit_to_media(index);
    }
}

void Core::submit_to_media(std::uint32_t index) {
    StorageRequest& request = requests[index];
    StorageTarget& target = targets[request.target];
    if (target.retry_share > 0 && !request.was_retried && random.uniform() < target.retry_share) {
        // A disk's error recovery takes half a second or longer before a command is retried.
        request.was_retried = true;
        ++traces.targets[request.target].retries;
        if (traces.targets[request.target].retries % 16 == 1) {
            const std::string host = target.site.server >= 0
                                         ? servers[static_cast<std::size_t>(target.site.server)].site.id
                                         : clients.front().site.id;
            log(host, "blk_update_request: I/O error, dev " + target.site.id + ", sector " +
                          std::to_string(request.object_offset / 512));
        }
        push(add_time(now, 500'000'000), EventKind::at_media, index);
        return;
    }
    const FileState& file = files[request.file];
    MediaRequest media_request;
    media_request.object = request.file;
    media_request.offset = request.object_offset;
    media_request.length = request.length;
    media_request.is_write = request.is_write;
    media_request.drive_position = file.drive_position;
    media_request.fragments =
        file.fragments <= 1 ? 1 : 1 + static_cast<std::uint32_t>((file.fragments - 1) * request.length / (1ULL << 20U));
    media_request.writer_count = std::max(file.writer_count, 1U);
    Medium* medium = target.site.medium >= 0 ? &media[static_cast<std::size_t>(target.site.medium)] : nullptr;
    const ServiceTimes times = serve_request(target, medium, media_request, now);
    request.tail = times.done;
    push(request.is_write || request.hop_count == 0 ? times.done : times.first_byte, EventKind::media_done, index);
}

void Core::count_request(const StorageRequest& request) {
    TargetTrace& trace = traces.targets[request.target];
    const std::size_t pages = std::bit_width(std::max<std::uint64_t>(request.length / page_bytes, 1)) - 1;
    const auto us = static_cast<std::uint64_t>((request.tail - request.server_arrival) / 1000);
    (request.is_write ? trace.write_bytes : trace.read_bytes).add(request.length);
    (request.is_write ? trace.write_us : trace.read_us).add(us);
    auto& histogram = request.is_write ? trace.write_pages : trace.read_pages;
    ++histogram[std::min(pages, histogram.size() - 1)];
}

void Core::complete_at_media(std::uint32_t index) {
    StorageRequest& request = requests[index];
    count_request(request);
    if (request.is_write || request.hop_count == 0) {
        const Time answer_time = message_time(request);
        if (answer_time > 0) {
            push(add_time(now, answer_time), EventKind::at_client, index);
        } else {
            complete_request(index);
        }
        return;
    }
    pass_next_link(index);
}

void Core::complete_request(std::uint32_t index) {
    const StorageRequest request = requests[index];
    free_requests.push_back(index);
    --in_flight_count;
    Client& client = clients[request.client];
    TargetQueue& target_queue = client.target_queues[request.target];
    if (--target_queue.in_flight == 0) {
        --targets[request.target].active_clients;
    }
    if (!target_queue.queued_requests.empty()) {
        const std::uint32_t next = target_queue.queued_requests.front();
        target_queue.queued_requests.pop_front();
        send_request(next);
    }
    release_stream_slot(request);
    switch (request.purpose) {
        case RequestPurpose::call:
            if (--calls[request.call].pending_requests == 0) {
                finish_call(request.call, now);
            }
            return;
        case RequestPurpose::write_behind:
            return finish_write_back(request);
        case RequestPurpose::read_ahead:
            return finish_fetch(request);
    }
}

}  // namespace sonde::simulate
