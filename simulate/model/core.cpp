// SPDX-License-Identifier: Apache-2.0
#include "model/core.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace sonde::simulate {
namespace {

/// The name of a target in Lustre: fs1-OST0011. Other file systems have the id.
std::string lustre_target_name(const SiteModel& site, const TargetSite& target) {
    if (site.fs.kind != "lustre") {
        return target.id;
    }
    char number[16];
    std::snprintf(number, sizeof number, "-OST%04x", target.index);
    return site.fs.id + number;
}

}  // namespace

Core::Core(SiteModel described_site, const MachineOptions& machine_options, Listener& completion_listener)
    : site(std::move(described_site)),
      options(machine_options),
      listener(completion_listener),
      random(machine_options.seed, 0x6d616368696e65ULL) {
    std::uint64_t part = 1;
    for (ServerSite& server : site.servers) {
        servers.emplace_back(server, options.seed, ++part);
        if (server.rate.write > 0 || server.rate.read > 0) {
            LinkSite limit;
            limit.id = server.id;
            limit.rate = server.rate;
            servers.back().rate_link = static_cast<int>(site.links.size());
            site.links.push_back(limit);
        }
    }
    for (const LinkSite& link : site.links) {
        links.emplace_back(link, options.seed, ++part);
    }
    for (const MediumSite& medium : site.media) {
        media.emplace_back(medium, options.seed, ++part);
        traces.media.push_back({medium.id, {}, {}, {}, {}, {}});
    }
    for (const TargetSite& target : site.targets) {
        targets.emplace_back(target, options.seed, ++part);
        traces.targets.push_back({});
        traces.targets.back().id = target.id;
        traces.targets.back().name = lustre_target_name(site, target);
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
        clients.back().slowdown = client.slowdown;
        clients.back().forwarder_turn =
            static_cast<std::uint32_t>(clients.size() - 1);  // so that clients begin at different ones
        traces.nodes.push_back({client.id, {}, {}, {}, {}, {}});
    }
    for (const int router : site.routers) {
        const std::uint32_t weight = site.links[static_cast<std::size_t>(router)].weight;
        routers.insert(routers.end(), weight, static_cast<std::uint32_t>(router));
    }
    forwarders.assign(site.forwarders.size(), MultiServerStation(site.forward_threads));
    cached_page_cost_s = site.fs.cached_page_cost_s;
    next_start_target = random.integer_below(targets.size());
    if (options.sample_interval > 0) {
        push(options.sample_interval, EventKind::sample, 0);
        add_sample();
    }
}

void Core::handle(const ScheduledEvent& event) {
    now = event.time;
    ++handled_event_count;
    switch (static_cast<EventKind>(event.kind)) {
        case EventKind::call_begins:
            return begin_call(event.subject);
        case EventKind::next_link:
            return pass_next_link(event.subject);
        case EventKind::at_server:
            return receive_at_server(event.subject);
        case EventKind::at_media:
            return submit_to_media(event.subject);
        case EventKind::media_done:
            return complete_at_media(event.subject);
        case EventKind::at_client:
            return complete_request(event.subject);
        case EventKind::metadata_call:
            return serve_metadata_call(event.subject);
        case EventKind::metadata_done:
            return finish_call(event.subject, now);
        case EventKind::alarm: {
            const std::uint64_t tag = alarm_tags[event.subject];
            free_alarms.push_back(event.subject);
            return listener.on_alarm(now, tag);
        }
        case EventKind::neighbor_request:
            return submit_neighbor_request(event.subject);
        case EventKind::sample:
            push(add_time(now, options.sample_interval), EventKind::sample, 0);
            return add_sample();
        case EventKind::fault:
            return begin_planned_fault(event.subject);
    }
}

/// Processor time of a call on its client.
Time Core::call_cpu_time(const Client& client, const ModelOperation& operation) const {
    Time cost = client.site.call_cost;
    const bool is_transfer = operation.kind == ModelCallKind::read || operation.kind == ModelCallKind::write;
    if (is_transfer && !operation.direct) {
        cost += transfer_time(static_cast<double>(operation.length), client.site.copy_rate);
        // A full cache evicts a page for each page that it inserts.
        if (client.site.evict_cost > 0 && client.pages.bytes() + page_bytes > client.pages.capacity()) {
            cost += static_cast<Time>(operation.length / page_bytes) * client.site.evict_cost;
        }
    }
    return client.slowdown == 1 ? cost : static_cast<Time>(static_cast<double>(cost) * client.slowdown);
}

void Core::submit(Time time, const ModelOperation& operation) {
    std::uint32_t call = 0;
    if (free_calls.empty()) {
        call = static_cast<std::uint32_t>(calls.size());
        calls.emplace_back();
    } else {
        call = free_calls.back();
        free_calls.pop_back();
    }
    ClientStream& stream = streams[operation.stream];
    PendingCall& pending = calls[call];
    pending = PendingCall{};
    pending.operation = operation;
    pending.call_time = std::max(time, now);
    pending.cpu_time = call_cpu_time(clients[stream.client], operation);
    ++in_flight_count;
    push(stream.cpu.reserve(std::max(time, now), pending.cpu_time).end, EventKind::call_begins, call);
}

std::optional<CompletedOperation> Core::complete_without_event(Time time, const ModelOperation& operation) {
    if (operation.direct || operation.sync) {
        return std::nullopt;
    }
    ClientStream& stream = streams[operation.stream];
    const std::uint64_t end = operation.offset + operation.length;
    if (operation.kind == ModelCallKind::write) {
        WritePiece& piece = stream.piece;
        // The last byte of a piece sends a request, which needs an event.
        if (!piece.is_open || piece.file != operation.file || piece.written_until != operation.offset ||
            end >= piece.reserved_until) {
            return std::nullopt;
        }
        piece.written_until = end;
        FileState& file = files[operation.file];
        file.size = std::max(file.size, end);
    } else if (operation.kind == ModelCallKind::read) {
        if (stream.file != operation.file || operation.offset < stream.ready_from || end > stream.ready_until ||
            cached_page_cost_s > 0) {
            return std::nullopt;
        }
        stream.last_read_end = end;
    } else {
        return std::nullopt;
    }
    const Time cpu = call_cpu_time(clients[stream.client], operation);
    const Time return_time = stream.cpu.reserve(time, cpu).end;
    traces.nodes[stream.client].add(operation, operation.length, return_time - time);
    return CompletedOperation{operation.tag, return_time, cpu};
}

void Core::begin_call(std::uint32_t call) {
    const ModelOperation& operation = calls[call].operation;
    switch (operation.kind) {
        case ModelCallKind::write:
            if (operation.direct || operation.sync) {
                return begin_direct(call);
            }
            if (!buffer_write(call)) {
                wait_for_dirty_room(call);
            }
            return;
        case ModelCallKind::read:
            return operation.direct ? begin_direct(call) : begin_read(call);
        case ModelCallKind::fsync:
            return begin_fsync(call);
        case ModelCallKind::close:
            send_piece(operation.stream);
            unregister_writer(streams[operation.stream]);
            return send_metadata_call(call);
        default:
            return send_metadata_call(call);
    }
}

/// Bytes that a call transfers: a read ends with the file.
std::uint64_t Core::transferred_bytes(const ModelOperation& operation) const {
    const std::uint64_t size = files[operation.file].size;
    return operation.kind != ModelCallKind::read ? operation.length
                                                 : std::min(operation.length, size - std::min(size, operation.offset));
}

void Core::finish_call(std::uint32_t call, Time time) {
    const PendingCall& pending = calls[call];
    traces.nodes[streams[pending.operation.stream].client].add(pending.operation, transferred_bytes(pending.operation),
                                                               time - pending.call_time);
    const CompletedOperation completed{pending.operation.tag, time, pending.cpu_time};
    free_calls.push_back(call);
    --in_flight_count;
    listener.on_completion(completed);
}

void Core::add_sample() {
    count_background_metadata();
    CounterSample row;
    row.time = now;
    for (const TargetTrace& target : traces.targets) {
        row.read.push_back(target.read_bytes.sum);
        row.written.push_back(target.write_bytes.sum);
    }
    traces.samples.push_back(std::move(row));
}

/// Updates the counters that events do not: calls of other users at metadata servers, and drives.
void Core::update_counters() {
    count_background_metadata();
    for (std::size_t i = 0; i < media.size(); ++i) {
        const Medium& medium = media[i];
        traces.media[i] = {medium.site.id, medium.reads,         medium.read_bytes,
                           medium.writes,  medium.written_bytes, medium.busy_time()};
    }
}

void Core::compute_free_space() {
    std::vector<std::uint64_t> stored(targets.size(), 0);
    for (const auto& [name, id] : files_by_name) {
        const FileState& file = files[id];
        const std::uint64_t stripes = file.size / file.layout.size;
        for (std::uint32_t k = 0; file.size > 0 && k < file.layout.count; ++k) {
            const std::uint64_t full_stripes = stripes / file.layout.count + (k < stripes % file.layout.count ? 1 : 0);
            const std::uint64_t partial_stripe = k == stripes % file.layout.count ? file.size % file.layout.size : 0;
            stored[(file.layout.start + k) % targets.size()] += full_stripes * file.layout.size + partial_stripe;
        }
    }
    const double used = full_share >= 0 ? full_share : site.fs.used;
    for (std::size_t i = 0; i < targets.size(); ++i) {
        const auto unused =
            static_cast<std::uint64_t>(std::llround(static_cast<double>(traces.targets[i].capacity) * (1 - used)));
        traces.targets[i].free_bytes = unused - std::min(unused, stored[i]);
    }
}

void Core::log(const std::string& host, const std::string& text) {
    traces.messages.push_back({now, host, text});
}

}  // namespace sonde::simulate
