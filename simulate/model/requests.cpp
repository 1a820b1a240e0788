// SPDX-License-Identifier: Apache-2.0
#include "model/requests.hpp"

namespace sonde::simulate {

RequestPath::RequestPath(const SystemModel& site, ClientTable& clients, Network& network, StorageServers& storage,
                         Timeline& timeline, RequestOwner& owner)
    : site_(site), clients_(clients), network_(network), storage_(storage), timeline_(timeline), owner_(owner) {
}

std::uint32_t RequestPath::create(StreamId stream, const StripeLocation& location, FileId file, std::uint64_t offset,
                                  std::uint64_t length, bool is_write, RequestPurpose purpose) {
    std::uint32_t request_index = 0;
    if (free_requests_.empty()) {
        request_index = static_cast<std::uint32_t>(requests_.size());
        requests_.emplace_back();
    } else {
        request_index = free_requests_.back();
        free_requests_.pop_back();
    }
    StorageRequest& request = requests_[request_index];
    request = StorageRequest{};
    request.file_offset = offset;
    request.object_offset = location.object_offset;
    request.length = length;
    request.client = clients_.stream(stream).client;
    request.target = location.target;
    request.file = file;
    request.stream = stream;
    request.is_write = is_write;
    request.purpose = purpose;
    timeline_.begin_activity();
    return request_index;
}

void RequestPath::enqueue(std::uint32_t request_index) {
    const StorageRequest& request = requests_[request_index];
    if (const std::uint32_t most = stream_limit(request); most > 0) {
        InFlightLimit& limit = clients_.stream(request.stream).in_flight_limit[request.is_write ? 1 : 0];
        if (limit.in_flight >= most) {
            (limit.first_waiting == no_index ? limit.first_waiting : requests_[limit.last_waiting].next_waiting) =
                request_index;
            limit.last_waiting = request_index;
            return;
        }
        ++limit.in_flight;
    }
    submit_to_target(request_index);
}

/// Submits the next waiting request of the stream of a finished one.
void RequestPath::release_stream_slot(const StorageRequest& finished) {
    if (stream_limit(finished) == 0) {
        return;
    }
    InFlightLimit& limit = clients_.stream(finished.stream).in_flight_limit[finished.is_write ? 1 : 0];
    const std::uint32_t next = limit.first_waiting;
    if (next == no_index) {
        --limit.in_flight;
        return;
    }
    limit.first_waiting = requests_[next].next_waiting;
    submit_to_target(next);
}

/// Sends a request, or queues it while its client has the maximum in flight to the target.
void RequestPath::submit_to_target(std::uint32_t request_index) {
    const StorageRequest& request = requests_[request_index];
    Client& client = clients_[request.client];
    TargetQueue& target_queue = client.target_queue(request.target, storage_.target_count());
    const std::uint32_t limit = client.description.rpcs_in_flight;
    if (site_.file_system.is_local || limit == 0 || target_queue.in_flight < limit) {
        send(request_index);
    } else {
        target_queue.queued_requests.push_back(request_index);
    }
}

void RequestPath::send(std::uint32_t request_index) {
    StorageRequest& request = requests_[request_index];
    Client& client = clients_[request.client];
    StorageTarget& target = storage_.target(request.target);
    ++client.target_queues[request.target].in_flight;
    if (target.description.contention > 0) {
        ++target.active_files[request.file];
    }
    network_.choose_route(request, client, target, storage_.find_server(request.target));
    const Time now = timeline_.now();
    Time send_time = now;
    if (request.purpose == RequestPurpose::write_behind && client.description.write_behind_rate > 0) {
        send_time =
            client.flusher
                .reserve(now, transfer_time(static_cast<double>(request.length), client.description.write_behind_rate))
                .end;
    }
    send_time = network_.reserve_forwarder(request.forwarder, send_time);
    request.last_byte_time = send_time;
    if (!request.is_write) {
        timeline_.push(add_time(send_time, network_.message_time(request)), EventKind::at_server, request_index);
    } else if (request.hop_count == 0) {
        timeline_.push(send_time, EventKind::at_server, request_index);
    } else if (send_time > now) {
        timeline_.push(send_time, EventKind::next_link, request_index);
    } else {
        transmit_over_next_link(request_index);
    }
}

void RequestPath::transmit_over_next_link(std::uint32_t request_index) {
    StorageRequest& request = requests_[request_index];
    const Link::LinkTransit passage = network_.transmit_over_next_link(request, timeline_.now());
    if (request.hop < request.hop_count) {
        timeline_.push(passage.first_byte, EventKind::next_link, request_index);
    } else {
        timeline_.push(passage.last_byte, request.is_write ? EventKind::at_server : EventKind::at_client,
                       request_index);
    }
}

void RequestPath::complete_at_media(std::uint32_t request_index) {
    StorageRequest& request = requests_[request_index];
    storage_.trace_request(request);
    if (request.is_write || request.hop_count == 0) {
        const Time answer_time = network_.message_time(request);
        if (answer_time > 0) {
            timeline_.push(add_time(timeline_.now(), answer_time), EventKind::at_client, request_index);
        } else {
            complete(request_index);
        }
        return;
    }
    transmit_over_next_link(request_index);
}

void RequestPath::complete(std::uint32_t request_index) {
    const StorageRequest request = requests_[request_index];
    free_requests_.push_back(request_index);
    timeline_.end_activity();
    TargetQueue& target_queue = clients_[request.client].target_queues[request.target];
    --target_queue.in_flight;
    if (StorageTarget& target = storage_.target(request.target); target.description.contention > 0) {
        if (const auto active = target.active_files.find(request.file); --active->second == 0) {
            target.active_files.erase(active);
        }
    }
    if (!target_queue.queued_requests.empty()) {
        const std::uint32_t next = target_queue.queued_requests.front();
        target_queue.queued_requests.pop_front();
        send(next);
    }
    release_stream_slot(request);
    owner_.on_request_done(request);
}

}  // namespace sonde::simulate
