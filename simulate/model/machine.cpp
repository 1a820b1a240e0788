// SPDX-License-Identifier: Apache-2.0
#include "model/machine.hpp"

#include "model/core.hpp"

#include <algorithm>

namespace sonde::simulate {

Machine::Machine(SiteModel site, const MachineOptions& options, Listener& listener)
    : core_(std::make_unique<Core>(std::move(site), options, listener)) {
}
Machine::~Machine() = default;

const SiteModel& Machine::site() const {
    return core_->site;
}

FileId Machine::get_file(std::string_view path) {
    const auto [entry, is_new] = core_->files_by_name.try_emplace(std::string(path), 0);
    if (is_new) {
        entry->second = core_->create_file();
    }
    return entry->second;
}

bool Machine::exists(std::string_view path) const {
    return core_->files_by_name.contains(std::string(path));
}

ModelLayout Machine::get_layout(FileId file) const {
    return core_->files[file].layout;
}

void Machine::set_layout(FileId file, const ModelLayout& layout) {
    if (layout.size < page_bytes || layout.size % page_bytes != 0) {
        throw SiteError("a stripe of " + std::to_string(layout.size) + " bytes: it must be a multiple of 4096");
    }
    if (layout.count == 0 || layout.count > core_->targets.size() || layout.start >= core_->targets.size()) {
        throw SiteError("a layout over " + std::to_string(layout.count) + " targets from number " +
                        std::to_string(layout.start) + ": the file system has " +
                        std::to_string(core_->targets.size()));
    }
    core_->files[file].layout = layout;
}

std::uint64_t Machine::file_size(FileId file) const {
    return core_->files[file].size;
}

void Machine::resize(FileId id, std::uint64_t size) {
    FileState& file = core_->files[id];
    if (size < file.size) {
        for (Client& client : core_->clients) {
            client.pages.remove_file(id);
        }
        file.lock_holders.clear();
    }
    file.size = size;
    file.allocated_bytes = std::min(file.allocated_bytes, size);
    if (size == 0) {
        core_->place_on_drives(file);
    }
}

void Machine::allocate(FileId id, std::uint64_t size) {
    FileState& file = core_->files[id];
    file.allocated_bytes = std::max(file.allocated_bytes, size);
}

void Machine::remove_file(std::string_view path) {
    const auto entry = core_->files_by_name.find(std::string(path));
    if (entry == core_->files_by_name.end()) {
        return;
    }
    FileState& file = core_->files[entry->second];
    if (file.size > 0) {
        for (Client& client : core_->clients) {
            client.pages.remove_file(entry->second);
        }
    }
    // Write-backs in flight still refer to the file.
    if (file.pending_write_backs.empty() && file.waiting_fsyncs.empty()) {
        core_->free_files.push_back(entry->second);
    }
    core_->files_by_name.erase(entry);
}

void Machine::rename_file(std::string_view from, std::string_view to) {
    const auto entry = core_->files_by_name.find(std::string(from));
    if (entry != core_->files_by_name.end() && from != to) {
        const FileId id = entry->second;
        remove_file(to);
        core_->files_by_name.erase(std::string(from));
        core_->files_by_name.emplace(std::string(to), id);
    }
}

std::vector<std::string> Machine::file_names() const {
    std::vector<std::string> names;
    names.reserve(core_->files_by_name.size());
    for (const auto& [name, file] : core_->files_by_name) {
        names.push_back(name);
    }
    return names;
}

StreamId Machine::begin_stream(std::uint32_t client) {
    StreamId id = 0;
    if (core_->free_streams.empty()) {
        id = static_cast<StreamId>(core_->streams.size());
        core_->streams.emplace_back();
    } else {
        id = core_->free_streams.back();
        core_->free_streams.pop_back();
        ClientStream stream;  // requests of the previous stream of this number may be in flight
        std::copy(std::begin(core_->streams[id].in_flight_limit), std::end(core_->streams[id].in_flight_limit),
                  stream.in_flight_limit);
        core_->streams[id] = std::move(stream);
    }
    core_->streams[id].client = client;
    core_->clients[client].streams.push_back(id);
    return id;
}

void Machine::end_stream(StreamId id) {
    core_->send_piece(id);
    core_->unregister_writer(core_->streams[id]);
    std::erase(core_->clients[core_->streams[id].client].streams, id);
    if (core_->streams[id].missing_ranges.empty()) {
        core_->free_streams.push_back(id);  // otherwise its read-ahead is in flight
    }
}

Time Machine::now() const {
    return core_->now;
}

void Machine::submit(Time time, const ModelOperation& operation) {
    core_->submit(time, operation);
}

std::optional<CompletedOperation> Machine::complete_without_event(Time time, const ModelOperation& operation) {
    return core_->complete_without_event(time, operation);
}

void Machine::set_alarm(Time time, std::uint64_t tag) {
    std::uint32_t alarm = 0;
    if (core_->free_alarms.empty()) {
        alarm = static_cast<std::uint32_t>(core_->alarm_tags.size());
        core_->alarm_tags.push_back(tag);
    } else {
        alarm = core_->free_alarms.back();
        core_->free_alarms.pop_back();
        core_->alarm_tags[alarm] = tag;
    }
    core_->push(std::max(time, core_->now), EventKind::alarm, alarm);
}

Time Machine::next_event_time() const {
    return core_->queue.next_time();
}

bool Machine::step() {
    if (core_->queue.is_empty()) {
        return false;
    }
    core_->handle(core_->queue.pop());
    return true;
}

void Machine::advance_to(Time time) {
    while (core_->queue.next_time() <= time) {
        core_->handle(core_->queue.pop());
    }
    core_->now = std::max(core_->now, time);
}

void Machine::write_back_all(Time limit) {
    for (StreamId id = 0; id < core_->streams.size(); ++id) {
        core_->send_piece(id);
    }
    const auto has_dirty_data = [this] {
        return std::any_of(core_->clients.begin(), core_->clients.end(),
                           [](const Client& client) { return client.write_back_count > 0; });
    };
    while (has_dirty_data() && next_event_time() <= limit) {
        step();
    }
}

void Machine::drop_client_caches(std::uint32_t client) {
    core_->clients[client].pages.clear();
    for (const StreamId id : core_->clients[client].streams) {
        ClientStream& stream = core_->streams[id];
        stream.ready_until = stream.ready_from;
    }
}

void Machine::drop_server_caches() {
    for (Server& server : core_->servers) {
        server.cache.clear();
    }
    for (FileState& file : core_->files) {
        file.is_cached_by_server = false;
    }
}

std::uint64_t Machine::cached_bytes(std::uint32_t client, FileId file) const {
    return core_->clients[client].pages.cached_bytes_of(file);
}

void Machine::begin_fault(const Fault& fault) {
    core_->begin_fault(fault);
}

void Machine::end_fault(const Fault& fault) {
    core_->end_fault(fault);
}

const Traces& Machine::traces() const {
    core_->compute_free_space();
    return counters();
}

const Traces& Machine::counters() const {
    core_->update_counters();
    return core_->traces;
}

const std::vector<Fault>& Machine::faults() const {
    return core_->faults;
}

std::vector<Machine::Flow> Machine::flows() const {
    std::vector<Flow> flows;
    for (const Link& link : core_->links) {
        flows.push_back({link.site.id, link.bytes[1], link.bytes[0],
                         link.directions[0].busy_time() + link.directions[1].busy_time()});
    }
    for (std::size_t i = 0; i < core_->targets.size(); ++i) {
        const TargetTrace& trace = core_->traces.targets[i];
        flows.push_back(
            {trace.id, trace.write_bytes.sum, trace.read_bytes.sum, core_->targets[i].rate_station.busy_time()});
    }
    return flows;
}

std::uint64_t Machine::handled_event_count() const {
    return core_->handled_event_count;
}

}  // namespace sonde::simulate
