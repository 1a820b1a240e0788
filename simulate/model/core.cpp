// SPDX-License-Identifier: Apache-2.0
#include "model/core.hpp"

#include <algorithm>

namespace sonde::simulate {

Core::Core(SystemModel site, const MachineOptions& options, Listener& listener)
    : parts(std::move(site), options, listener),
      faults(parts),
      sample_interval_(options.sample_interval),
      listener_(listener) {
    if (sample_interval_ > 0) {
        parts.timeline.push(sample_interval_, EventKind::sample, 0);
        parts.add_sample();
    }
}

void Core::handle_next_event() {
    const ScheduledEvent event = parts.timeline.pop();
    switch (const auto kind = static_cast<EventKind>(event.kind)) {
        case EventKind::call_begins:
            return begin_call(event.subject);
        case EventKind::metadata_call:
            return parts.metadata.serve_call(event.subject);
        case EventKind::metadata_done:
            return parts.calls.finish(event.subject, event.time);
        case EventKind::alarm: {
            const std::uint64_t tag = alarm_tags_[event.subject];
            free_alarms_.push_back(event.subject);
            return listener_.on_alarm(event.time, tag);
        }
        case EventKind::neighbor_request:
            return parts.neighbors.submit_request(event.subject);
        case EventKind::sample:
            parts.timeline.push(add_time(event.time, sample_interval_), EventKind::sample, 0);
            return parts.add_sample();
        case EventKind::fault:
            return faults.begin_planned(event.subject);
        case EventKind::fault_ends:
            return faults.end_planned(event.subject);
        default:
            return handle_request_event(kind, event.subject);
    }
}

void Core::handle_request_event(EventKind kind, std::uint32_t request) {
    RequestPath& requests = parts.cache.requests();
    switch (kind) {
        case EventKind::next_link:
            return requests.transmit_over_next_link(request);
        case EventKind::at_server:
            return requests.receive_at_server(request);
        case EventKind::at_media:
            return requests.submit_to_media(request);
        case EventKind::media_done:
            return requests.complete_at_media(request);
        default:
            return requests.complete(request);
    }
}

void Core::submit(Time time, const ModelOperation& operation) {
    const Time call_time = std::max(time, parts.timeline.now());
    ClientStream& stream = parts.clients.stream(operation.stream);
    if (!parts.timeline.is_active()) {
        parts.neighbors.resume();
    }
    const Time cpu_time = parts.cache.call_cpu_time(parts.clients[stream.client], operation);
    const std::uint32_t call = parts.calls.add(operation, call_time, cpu_time);
    parts.timeline.push(stream.cpu.reserve(call_time, cpu_time).end, EventKind::call_begins, call);
}

void Core::begin_call(std::uint32_t call) {
    const ModelOperation& operation = parts.calls[call].operation;
    switch (operation.kind) {
        case ModelCallKind::write:
            return parts.cache.begin_write(call);
        case ModelCallKind::read:
            return parts.cache.begin_read(call);
        case ModelCallKind::fsync:
            return parts.cache.begin_fsync(call);
        case ModelCallKind::close:
            parts.cache.close_file(operation.stream);
            return parts.metadata.send_call(call);
        default:
            return parts.metadata.send_call(call);
    }
}

void Core::set_alarm(Time time, std::uint64_t tag) {
    std::uint32_t alarm = 0;
    if (free_alarms_.empty()) {
        alarm = static_cast<std::uint32_t>(alarm_tags_.size());
        alarm_tags_.push_back(tag);
    } else {
        alarm = free_alarms_.back();
        free_alarms_.pop_back();
        alarm_tags_[alarm] = tag;
    }
    parts.timeline.push(std::max(time, parts.timeline.now()), EventKind::alarm, alarm);
}

}  // namespace sonde::simulate
