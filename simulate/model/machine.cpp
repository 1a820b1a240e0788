// SPDX-License-Identifier: Apache-2.0
#include "model/machine.hpp"

#include "model/core.hpp"

#include <algorithm>

namespace sonde::simulate {

Machine::Machine(SystemModel site, const MachineOptions& options, Listener& listener)
    : core_(std::make_unique<Core>(std::move(site), options, listener)) {
}
Machine::~Machine() = default;

const SystemModel& Machine::system() const {
    return core_->parts.system;
}

FileId Machine::get_file(std::string_view path) {
    return core_->parts.files.get_or_create(path);
}

bool Machine::exists(std::string_view path) const {
    return core_->parts.files.exists(path);
}

ModelLayout Machine::get_layout(FileId file) const {
    return core_->parts.files[file].layout;
}

void Machine::set_layout(FileId file, const ModelLayout& layout) {
    if (layout.size < page_bytes || layout.size % page_bytes != 0) {
        throw SystemModelError("a stripe of " + std::to_string(layout.size) + " bytes: it must be a multiple of 4096");
    }
    const std::size_t target_count = system().targets.size();
    if (layout.count == 0 || layout.count > target_count || layout.start >= target_count) {
        throw SystemModelError("a layout over " + std::to_string(layout.count) + " targets from number " +
                               std::to_string(layout.start) + ": the file system has " + std::to_string(target_count));
    }
    core_->parts.files[file].layout = layout;
}

std::uint64_t Machine::file_size(FileId file) const {
    return core_->parts.files[file].size;
}

void Machine::resize_file(FileId file, std::uint64_t size) {
    core_->parts.files.resize(file, size, core_->parts.clients);
}

void Machine::allocate_blocks(FileId file, std::uint64_t size) {
    core_->parts.files[file].extend_allocation(size);
}

void Machine::remove_file(std::string_view path) {
    core_->parts.files.remove(path, core_->parts.clients);
}

void Machine::rename_file(std::string_view from, std::string_view to) {
    core_->parts.files.rename(from, to, core_->parts.clients);
}

std::vector<std::string> Machine::file_names() const {
    std::vector<std::string> names;
    names.reserve(core_->parts.files.files_by_name().size());
    for (const auto& [name, file] : core_->parts.files.files_by_name()) {
        names.push_back(name);
    }
    return names;
}

StreamId Machine::begin_stream(std::uint32_t client) {
    return core_->parts.clients.begin_stream(client);
}

void Machine::end_stream(StreamId stream) {
    core_->parts.cache.close_file(stream);
    core_->parts.clients.end_stream(stream);
}

Time Machine::now() const {
    return core_->parts.timeline.now();
}

void Machine::submit(Time time, const ModelOperation& operation) {
    core_->submit(time, operation);
}

std::optional<CompletedOperation> Machine::complete_without_event(Time time, const ModelOperation& operation) {
    return core_->parts.cache.complete_without_event(time, operation);
}

void Machine::set_alarm(Time time, std::uint64_t tag) {
    core_->set_alarm(time, tag);
}

Time Machine::next_event_time() const {
    return core_->parts.timeline.next_time();
}

bool Machine::handle_next_event() {
    if (core_->parts.timeline.is_empty()) {
        return false;
    }
    core_->handle_next_event();
    return true;
}

void Machine::advance_to(Time time) {
    while (core_->parts.timeline.next_time() <= time) {
        core_->handle_next_event();
    }
    core_->parts.timeline.advance_to(time);
}

void Machine::write_back_all(Time limit) {
    for (StreamId id = 0; id < core_->parts.clients.stream_count(); ++id) {
        core_->parts.cache.write_back_piece(id);
    }
    while (core_->parts.clients.has_dirty_data() && next_event_time() <= limit) {
        handle_next_event();
    }
}

void Machine::drop_client_caches(std::uint32_t client) {
    core_->parts.cache.drop_pages(client);
}

void Machine::drop_server_caches() {
    for (Server& server : core_->parts.servers) {
        server.cache.clear();
    }
    core_->parts.files.drop_server_caches();
}

std::uint64_t Machine::cached_bytes(std::uint32_t client, FileId file) const {
    return core_->parts.clients[client].pages.count_cached_bytes(file);
}

void Machine::begin_fault(const Fault& fault) {
    core_->faults.begin(fault);
}

void Machine::end_fault(const Fault& fault) {
    core_->faults.end(fault);
}

const MonitoringData& Machine::get_monitoring_data() const {
    core_->parts.compute_free_space();
    return get_counters();
}

const MonitoringData& Machine::get_counters() const {
    core_->parts.update_counters();
    return core_->parts.monitoring;
}

const std::vector<Fault>& Machine::faults() const {
    return core_->faults.faults();
}

std::vector<Machine::Flow> Machine::flows() const {
    std::vector<Flow> flows;
    for (const Link& link : core_->parts.network.links()) {
        flows.push_back({link.description.id, link.bytes[1], link.bytes[0],
                         link.directions[0].busy_time() + link.directions[1].busy_time()});
    }
    for (std::size_t i = 0; i < core_->parts.storage.target_count(); ++i) {
        const TargetCounters& counters = core_->parts.monitoring.targets[i];
        flows.push_back({counters.id, counters.write_bytes.sum, counters.read_bytes.sum,
                         core_->parts.storage.targets()[i].rate_station.busy_time()});
    }
    return flows;
}

std::vector<PartLoad> Machine::part_loads() const {
    return core_->parts.loads();
}

std::uint64_t Machine::handled_event_count() const {
    return core_->parts.timeline.handled_event_count();
}

}  // namespace sonde::simulate
